"""The frame of learned placers, and the models that people place with; torch is imported late."""
