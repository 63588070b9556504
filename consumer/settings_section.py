"""What every section of the settings is, and the kinds of number that several of them use."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(gt=0.0, le=1.0)]
PositiveSeconds = Annotated[float, Field(gt=0.0)]


class Section(BaseModel):
    """Unknown keys are errors, numbers are finite, values do not change, and a default is held to the same rules."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)
