"""Where the model is: chunks are asked for, scored and written, and tests get their answers."""
