"""Where the run is: outcomes are gathered, gates judged, and the exit code is set."""
