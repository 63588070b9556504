"""The demo: embedded services, both workers, and a simulated help-desk QA service with a scripted incident."""
