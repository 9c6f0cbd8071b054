"""The part of the sandbox that runs inside it: standard library only, sent in at the start.

Four kinds of process: the supervisor; two warm interpreters that fork on its request; per program a
*candidate* process that runs untrusted code and a *checker* process that runs the checks. The
checker calls the candidate over a socket with plain data and reports to the supervisor the verdict on
a socket that the candidate never had.
"""
