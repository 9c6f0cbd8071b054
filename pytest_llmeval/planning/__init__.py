"""What is to be asked: the suite, the protocol of every test, the plan, and its fingerprints."""
