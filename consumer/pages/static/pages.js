// Everything works without this file. With it, choosing a statement lights up its evidence, and a link can be copied.
"use strict";

function light(number) {
  for (const mark of document.querySelectorAll(".lit")) mark.classList.remove("lit");
  for (const chosen of document.querySelectorAll("a.statement[aria-current]")) chosen.removeAttribute("aria-current");
  if (!number) return;
  for (const mark of document.querySelectorAll("mark[data-says]")) {
    if (mark.dataset.says.split(" ").includes(number)) mark.classList.add("lit");
  }
  const chosen = document.querySelector(`a.statement[data-statement="${number}"]`);
  if (chosen) chosen.setAttribute("aria-current", "true");
}

function chosenByAddress() {
  const found = /^#(?:evidence|statement)-(\d+)/.exec(location.hash);
  light(found && found[1]);
  const place = found && document.getElementById(location.hash.slice(1));
  if (!place) return;
  const passage = place.closest("details");
  if (passage && !passage.open) {
    passage.open = true;
    place.scrollIntoView();
  }
  place.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-statement]");
  // The address may be the chosen one already: then it does not change.
  if (link) setTimeout(chosenByAddress);
});
window.addEventListener("hashchange", chosenByAddress);
chosenByAddress();

for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(new URL(button.dataset.copy, location.href).href);
    button.textContent = "Copied";
  });
}
