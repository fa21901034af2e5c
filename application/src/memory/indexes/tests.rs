#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::time::Duration;

use super::super::testing::{Changes, memory, owner, query};
use super::*;

async fn found(indexes: &Indexes, number: i64, newest: i64, text: &str) -> Vec<u128> {
    let search = indexes.search(owner(number), newest, Vec::new(), query(text));
    let found = search.await.unwrap().found;
    found.iter().map(|s| s.id.0.as_u128()).collect()
}

#[tokio::test]
async fn what_is_known_is_not_asked_for_again_and_what_is_new_is() {
    let store = Arc::new(Changes::default());
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    assert!(found(&indexes, 1, 0, "tea").await.is_empty());
    assert_eq!(store.asked.load(Ordering::Relaxed), 0);
    let newest = store.write(1, [memory(1, "I like tea")]);
    for _ in 0..3 {
        assert_eq!(found(&indexes, 1, newest, "tea").await, [1]);
    }
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
    let newest = store.write(1, [memory(1, "I like milk"), memory(2, "Tea for two")]);
    assert_eq!(found(&indexes, 1, newest, "tea").await, [2]);
    assert_eq!(store.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn many_who_want_the_same_index_at_once_load_it_once() {
    let store = Arc::new(Changes {
        slow: Some(Duration::from_secs(1)),
        ..Changes::default()
    });
    let newest = store.write(1, [memory(1, "I like tea")]);
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    let all = (0..20).map(|_| found(&indexes, 1, newest, "tea"));
    for found in futures::future::join_all(all).await {
        assert_eq!(found, [1]);
    }
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_load_goes_on_when_whoever_began_it_goes_away() {
    let store = Arc::new(Changes {
        slow: Some(Duration::from_secs(10)),
        ..Changes::default()
    });
    let newest = store.write(1, [memory(1, "I like tea")]);
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    let impatient = found(&indexes, 1, newest, "tea");
    let given_up = tokio::time::timeout(Duration::from_secs(2), impatient).await;
    assert!(given_up.is_err());
    tokio::time::sleep(Duration::from_secs(9)).await;
    let next = found(&indexes, 1, newest, "tea");
    let next = tokio::time::timeout(Duration::from_secs(1), next).await;
    assert_eq!(next.unwrap(), [1]);
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_load_that_failed_halfway_leaves_nothing_that_is_gone_since() {
    let store = Arc::new(Changes::default());
    let many = (1..=6_000).map(|n| memory(n, &format!("word{n} and tea")));
    let newest = store.write(1, many);
    let indexes = Indexes::new(Arc::clone(&store) as _, usize::MAX, Vec::new());
    store.down.store(true, Ordering::Relaxed);
    let search = indexes.search(owner(1), newest, Vec::new(), query("word7"));
    assert!(search.await.is_err());
    store.down.store(false, Ordering::Relaxed);
    store.written.lock().unwrap().clear();
    let newest = store.write(1, [memory(9_000, "word7 and milk")]);
    assert_eq!(found(&indexes, 1, newest, "word7").await, [9_000]);
}

#[tokio::test]
async fn who_was_not_asked_for_longest_goes_first_and_comes_back_when_asked_for() {
    let store = Arc::new(Changes::default());
    for number in 1..=3 {
        store.write(number, [memory(number as u128, "I like tea")]);
    }
    let one = OwnerIndex::of([&memory(1, "I like tea")]).bytes();
    let indexes = Indexes::new(Arc::clone(&store) as _, 2 * one, Vec::new());
    for (number, asked) in [(1, 1), (2, 2), (1, 2), (3, 3), (1, 3), (2, 4), (3, 5)] {
        assert_eq!(found(&indexes, number, 1, "tea").await, [number as u128]);
        assert_eq!(store.asked.load(Ordering::Relaxed), asked, "{number}");
    }
    let held = lock(&indexes.cache).owners.len();
    assert_eq!((held, lock(&indexes.cache).bytes), (2, 2 * one));
}

#[tokio::test]
async fn one_index_larger_than_the_bound_is_served_and_kept() {
    let store = Arc::new(Changes::default());
    let many = (1..=12_000).map(|n| memory(n, &format!("word{n} and tea")));
    let newest = store.write(1, many);
    let indexes = Indexes::new(Arc::clone(&store) as _, 1, Vec::new());
    for _ in 0..2 {
        assert_eq!(found(&indexes, 1, newest, "word11999").await, [11_999]);
    }
    assert_eq!(store.asked.load(Ordering::Relaxed), 3, "pages");
    store.write(2, [memory(1, "I like tea")]);
    assert_eq!(found(&indexes, 2, 1, "tea").await, [1]);
    assert_eq!(lock(&indexes.cache).owners.len(), 1);
}
