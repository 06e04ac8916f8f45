"""From records to tables, figures, claims and the report; knows neither torch nor Hydra."""
