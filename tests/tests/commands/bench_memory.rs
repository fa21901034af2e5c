//! `tidemark bench memory`, small: that it measures what it says, not how fast this machine is.

use serde_json::Value;
use tidemark_tests::database::{Database, Store};
use tidemark_tests::each_store;

use crate::{said, tidemark};

each_store!(what_is_added_is_found_by_the_next_request_and_what_is_asked_for_is_recalled);

async fn what_is_added_is_found_by_the_next_request_and_what_is_asked_for_is_recalled(
    store: Store,
) {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::create(store, dir.path()).await;
    let output = tidemark(&[
        "bench",
        "memory",
        "--memories",
        "250",
        "--owners",
        "3",
        "--clients",
        "1,4",
        "--add-clients",
        "2",
        "--seconds",
        "1",
        "--rounds",
        "2",
        "--json",
        "--store",
        database.url(),
        "--require",
        "found=1",
        "--require",
        "recalled=0.9",
    ])
    .await;
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, least) in [
        ("first", 3),
        ("recall-1", 10),
        ("recall-4", 10),
        ("add-2", 10),
    ] {
        let row = &report["measurements"][name];
        assert!(row["n"].as_u64().unwrap() >= least, "{name}: {report}");
        assert!(
            row["per_second"].as_f64().unwrap() > 0.0,
            "{name}: {report}"
        );
        assert!(
            row["p50"].as_f64() <= row["p95"].as_f64(),
            "{name}: {report}"
        );
    }
    assert_eq!(report["owners"], 3);
}
