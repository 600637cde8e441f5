"""`python -m forgetting.claims`; see `forgetting.claims.survey`. (Other processes cannot import what stands here.)"""

from forgetting.claims.survey import main

if __name__ == "__main__":
    raise SystemExit(main())
