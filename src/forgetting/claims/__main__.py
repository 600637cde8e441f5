"""`python -m forgetting.claims`; see `forgetting.theory.survey`. (Other processes cannot import what stands here.)"""

from forgetting.theory.survey import main

if __name__ == "__main__":
    raise SystemExit(main())
