"""No container engine and no cluster runs where these tests do: manifests are checked by schema and by the product."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from consumer.settings import Settings
from consumer.settings_source import load
from deploy.grafana.generate import files as dashboard_files
from deploy.prometheus.generate import KUBERNETES, OPERATOR_RULES, RULES, operator_rules
from deploy.prometheus.table import TABLE, read_table

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
OURS = ("topics", "scorer", "monitor", "traffic")


def manifests() -> list[dict[str, Any]]:
    """Everything under deploy/kubernetes but the kustomization itself."""
    return [
        document
        for path in sorted(KUBERNETES.glob("*.yaml"))
        if path.name != "kustomization.yaml"
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]


def workloads() -> list[dict[str, Any]]:
    return [document for document in manifests() if document["kind"] == "Deployment"]


def test_compose_follows_its_specification() -> None:
    # The package itself wants a newer click than Faust allows; its copy of the specification is data.
    package = find_spec("check_jsonschema")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(COMPOSE, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(COMPOSE | {"servces": {}}, schema)


def test_compose_publishes_on_loopback_only_and_knows_no_default_password() -> None:
    for name, service in COMPOSE["services"].items():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), name
        for key, value in service.get("environment", {}).items():
            assert "PASSWORD" not in key.upper() or key.endswith("__FILE"), f"{name}: {key}={value}"
    assert set(COMPOSE["secrets"]) == {"redis_password", "grafana_password", "pages_token"}
    assert all(set(secret) == {"file"} for secret in COMPOSE["secrets"].values())
    assert COMPOSE["services"]["grafana"]["environment"]["GF_AUTH_ANONYMOUS_ENABLED"] == "false"


def test_every_service_is_limited_restarted_and_checked() -> None:
    for name, service in COMPOSE["services"].items():
        limits = service["deploy"]["resources"]["limits"]
        assert {"cpus", "memory"} <= set(limits), name
        assert service["restart"] in ("unless-stopped", "on-failure"), name
        # Scorer and monitor have the check of their image.
        assert "healthcheck" in service or name in ("scorer", "monitor"), name
        if "cap_drop" in service:
            assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(COMPOSE["services"][name]["read_only"] for name in OURS)


def test_files_that_compose_mounts_exist_or_are_secrets() -> None:
    mounted = [
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service.get("volumes", [])
        if volume.startswith("./")
    ]
    mounted += [config["file"] for config in COMPOSE["configs"].values()]
    assert len(mounted) >= 6
    for path in mounted:
        assert (DEPLOY / path).exists(), path
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8")
    assert "/deploy/secrets/" in ignored


def test_kafka_writes_to_its_volume() -> None:
    kafka = COMPOSE["services"]["kafka"]
    (volume,) = kafka["volumes"]
    assert volume == f"kafka:{kafka['environment']['KAFKA_LOG_DIRS']}"


def test_monitors_that_are_gone_hide_nothing_that_scorers_show() -> None:
    config = yaml.safe_load((DEPLOY / "alertmanager" / "alertmanager.yaml").read_text(encoding="utf-8"))
    gone = 'alertname="GroundwatchTargetsGone"'
    hidden: dict[str, str] = {}
    for rule in config["inhibit_rules"]:
        if gone in rule["source_matchers"]:
            (job,) = [m for m in rule["source_matchers"] if m.startswith("job")] or rule["equal"]
            hidden[job] = rule["target_matchers"][0]
    assert set(hidden) == {"job", 'job="groundwatch-scorer"', 'job="groundwatch-monitor"'}
    assert hidden["job"] == 'alertname="GroundwatchTargetDown"'
    assert "NoScores" not in hidden['job="groundwatch-monitor"']
    sums = next(rule for rule in config["inhibit_rules"] if 'app="all"' in rule["target_matchers"])
    assert sums["equal"] == ["alertname", "metric"], "drift of one metric must not hide that of another"


def test_prometheus_keeps_exemplars_and_uses_the_job_names_that_alerts_ask_for() -> None:
    assert "--enable-feature=exemplar-storage" in COMPOSE["services"]["prometheus"]["command"]
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text(encoding="utf-8"))
    table = read_table(Settings())
    jobs = {job["job_name"]: job["dns_sd_configs"][0] for job in config["scrape_configs"]}
    assert set(jobs) == {table.scorer_job, table.monitor_job}
    assert {(sd["names"][0], sd["port"]) for sd in jobs.values()} == {("scorer", 9108), ("monitor", 9109)}
    assert config["rule_files"] == [RULES]
    assert config["global"]["scrape_interval"] == "15s"


@pytest.mark.parametrize("file", [DEPLOY / "groundwatch.toml", KUBERNETES / "groundwatch.toml"], ids=str)
def test_settings_files_are_valid(file: Path) -> None:
    load(file, {"GROUNDWATCH__KAFKA__SASL_USERNAME": "scorer"} if "kafka" in tomllib.loads(file.read_text()) else {})


def test_settings_in_environments_exist() -> None:
    environment = {
        key: str(value)
        for name in OURS
        for key, value in COMPOSE["services"][name].get("environment", {}).items()
        if key.startswith("GROUNDWATCH__")
    }
    load(DEPLOY / "groundwatch.toml", environment)
    for name in ("scorer", "monitor"):
        (key,) = re.findall(r"GROUNDWATCH__REDIS__(\w+)=", " ".join(COMPOSE["services"][name]["entrypoint"]))
        assert key.lower() in Settings().redis.model_dump()


def test_the_pages_leave_a_container_only_with_a_token() -> None:
    monitor = COMPOSE["services"]["monitor"]
    assert monitor["environment"]["GROUNDWATCH__PAGES__TOKEN_FILE"] == "/run/secrets/pages_token"
    assert "pages_token" in monitor["secrets"]
    assert "PAGES" not in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "PAGES" not in (KUBERNETES / "monitor.yaml").read_text(encoding="utf-8")
    patch = yaml.safe_load((KUBERNETES / "pages" / "monitor.yaml").read_text(encoding="utf-8"))
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    own = {entry["name"]: entry for entry in container["env"]}
    reference = own["GROUNDWATCH__PAGES__TOKEN"]["valueFrom"]["secretKeyRef"]
    assert "optional" not in reference
    base = next(w for w in workloads() if w["metadata"]["name"] == patch["metadata"]["name"])
    assert container["name"] == base["spec"]["template"]["spec"]["containers"][0]["name"]
    listen = own["GROUNDWATCH__PAGES__LISTEN"]["value"]
    loaded = load(None, {"GROUNDWATCH__PAGES__LISTEN": listen, "GROUNDWATCH__PAGES__TOKEN": "x" * 32})
    assert loaded.settings.pages.guarded


def test_the_manifests_of_the_pages_follow_the_strict_schemas() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for name in ("service", "networkpolicy"):
        document = yaml.safe_load((KUBERNETES / "pages" / f"{name}.yaml").read_text(encoding="utf-8"))
        kubernetes_validate.validate(document, "1.31", strict=True)
    component = yaml.safe_load((KUBERNETES / "pages" / "kustomization.yaml").read_text(encoding="utf-8"))
    assert component["kind"] == "Component"
    for name in (*component["resources"], *(patch["path"] for patch in component["patches"])):
        assert (KUBERNETES / "pages" / name).exists()


def test_kubernetes_manifests_follow_the_strict_schemas() -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    native = [document for document in manifests() if "monitoring.coreos.com" not in document["apiVersion"]]
    kinds = ["Deployment"] * 2 + ["NetworkPolicy"] + ["PodDisruptionBudget"] * 2 + ["Service"] * 2
    assert sorted(document["kind"] for document in native) == kinds
    for document in native:
        kubernetes_validate.validate(document, "1.31", strict=True)
    broken = dict(native[0], spec={**native[0]["spec"], "replica": 1})
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, "1.31", strict=True)


def test_operator_resources_follow_their_schemas() -> None:
    v1 = pytest.importorskip("cloudcoil.models.prometheus_operator.v1")
    rules, monitor = (
        next(document for document in manifests() if document["kind"] == kind)
        for kind in ("PrometheusRule", "ServiceMonitor")
    )
    for model, document in ((v1.PrometheusRule, rules), (v1.ServiceMonitor, monitor)):
        read = model.model_validate(document)
        # What the model does not know it would drop.
        assert read.model_dump(by_alias=True, exclude_unset=True, mode="json")["spec"] == document["spec"]


def test_the_operator_rules_are_those_of_the_rule_file() -> None:
    assert (KUBERNETES / OPERATOR_RULES).read_text(encoding="utf-8") == operator_rules(read_table(Settings()))
    rules = yaml.safe_load((TABLE.parent / RULES).read_text(encoding="utf-8"))
    assert yaml.safe_load((KUBERNETES / OPERATOR_RULES).read_text(encoding="utf-8"))["spec"] == rules


def test_pods_run_as_nobody_with_a_read_only_root_and_limits() -> None:
    assert len(workloads()) == 2
    for workload in workloads():
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        for probe, path in (("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")):
            assert container[f"{probe}Probe"]["httpGet"]["path"] == path
        (secret,) = [volume["secret"] for volume in pod["volumes"] if volume["name"] == "kafka"]
        process = workload["metadata"]["name"].removeprefix("groundwatch-")
        assert [item["key"] for item in secret["items"]] == [f"{process}-password", "ca.pem"], "a password of its own"
        (user,) = [one["value"] for one in container["env"] if one["name"].endswith("SASL_USERNAME")]
        assert user == f"groundwatch-{process}"
    pods = {workload["metadata"]["name"]: workload["spec"]["template"]["spec"] for workload in workloads()}
    assert pods["groundwatch-scorer"]["terminationGracePeriodSeconds"] > Settings().scorer.shutdown_seconds


def test_names_and_ports_fit_together() -> None:
    services = {document["metadata"]["name"]: document for document in manifests() if document["kind"] == "Service"}
    table = read_table(Settings())
    assert set(services) == {table.scorer_job, table.monitor_job}
    for workload in workloads():
        name = workload["metadata"]["name"]
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert services[name]["spec"]["selector"].items() <= labels.items()
        assert services[name]["spec"]["ports"][0]["port"] == container["ports"][0]["containerPort"]
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert {str(w["spec"]["template"]["spec"]["securityContext"]["runAsUser"]) for w in workloads()} == set(
        re.findall(r"^USER (\d+)$", dockerfile, re.M)
    )


def test_kustomize_builds_it() -> None:
    kubectl = shutil.which("kubectl") or shutil.which("kustomize")
    if kubectl is None:
        pytest.skip("neither kubectl nor kustomize is on the PATH")
    command = [kubectl, "kustomize"] if kubectl.endswith("kubectl") else [kubectl, "build"]
    built = subprocess.run([*command, str(KUBERNETES)], capture_output=True, text=True, timeout=60)
    assert built.returncode == 0, built.stderr
    documents = list(yaml.safe_load_all(built.stdout))
    assert {document["metadata"]["namespace"] for document in documents} == {"groundwatch"}
    assert {d["kind"] for d in documents} >= {"Deployment", "ConfigMap", "PrometheusRule", "ServiceMonitor"}


def test_grafana_is_provisioned_with_what_dashboards_and_exemplars_need() -> None:
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text(encoding="utf-8"))
    destinations = source["datasources"][0]["jsonData"]["exemplarTraceIdDestinations"]
    assert {destination["name"] for destination in destinations} == {"trace_id", "event_id"}
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/groundwatch.yaml").read_text(encoding="utf-8"))
    mounted = " ".join(COMPOSE["services"]["grafana"]["volumes"])
    assert provider["providers"][0]["options"]["path"] in mounted
    made = dashboard_files(read_table(Settings()))
    assert {path.name for path in (DEPLOY / "grafana" / "dashboards").iterdir()} == set(made)
