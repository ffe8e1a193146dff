"""docs/kafka-compatibility.md says what a broker says of itself."""
import sys

import clients
from group import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import compatibility  # noqa: E402


def test_the_page_lists_the_requests_and_settings_that_a_broker_tells(single):
    clients.create_topic(single.bootstrap, "compatibility")
    changed = compatibility.differences(["apis", "configs"], single.brokers[0])
    assert not changed, f"run tools/compatibility.py write apis configs\n{changed}"
