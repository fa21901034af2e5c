//! The arrows of the architecture point one way only, and what stands beside the code can be read.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use tidemark_tests::server::repository;

/// Outermost first; each may use those behind it.
const LAYERS: [&str; 4] = [
    "tidemark-interface",
    "tidemark-infrastructure",
    "tidemark-application",
    "tidemark-domain",
];

/// Ids, time, error and serde derives, pure text analysis: what the domain may build on.
const DOMAIN_MAY_USE: [&str; 8] = [
    "chrono",
    "rust-stemmers",
    "serde",
    "serde_json",
    "thiserror",
    "unicode-normalization",
    "unicode-segmentation",
    "uuid",
];

fn packages() -> Vec<Package> {
    let manifest = repository().join("Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .expect("cargo metadata")
        .packages
}

fn package<'a>(packages: &'a [Package], name: &str) -> &'a Package {
    packages
        .iter()
        .find(|package| package.name.as_str() == name)
        .unwrap_or_else(|| panic!("no package {name}"))
}

/// Every Rust file below `folder`, with its text.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

#[test]
fn nobody_below_names_anybody_above() {
    let packages = packages();
    for (at, layer) in LAYERS.iter().enumerate() {
        for dependency in &package(&packages, layer).dependencies {
            let above = LAYERS[..at].contains(&dependency.name.as_str())
                || dependency.name == "tidemark-tests";
            assert!(
                !above,
                "{layer} names {} ({:?})",
                dependency.name, dependency.kind
            );
        }
    }
    let tests = package(&packages, "tidemark-tests");
    let named = tests
        .dependencies
        .iter()
        .find(|dependency| LAYERS.contains(&dependency.name.as_str()));
    assert!(
        named.is_none(),
        "the black-box suites name the product: {named:?}"
    );
}

#[test]
fn the_domain_depends_on_nothing_but_the_allowed() {
    let packages = packages();
    let used: BTreeSet<&str> = package(&packages, "tidemark-domain")
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let allowed = BTreeSet::from(DOMAIN_MAY_USE);
    assert!(
        used.is_subset(&allowed),
        "outside the list: {:?}",
        used.difference(&allowed)
    );
}

#[test]
fn the_domain_is_synchronous_and_asks_no_clock() {
    for (path, text) in sources(&repository().join("domain/src")) {
        for word in [
            "async fn",
            ".await",
            "Utc::now",
            "SystemTime::now",
            "Instant::now",
            "Uuid::now_v7",
            "std::fs",
            "std::net",
            "std::env",
        ] {
            assert!(!text.contains(word), "{} says {word}", path.display());
        }
    }
}

#[test]
fn only_the_composition_root_names_the_adapters() {
    let interface = repository().join("interface/src");
    for (path, text) in sources(&interface) {
        let place = path.strip_prefix(&interface).unwrap();
        let root = place == Path::new("main.rs")
            || place == Path::new("wiring.rs")
            || place.starts_with("cli")
            || place.starts_with("wiring");
        assert!(
            root || !text.contains("tidemark_infrastructure"),
            "{} names an adapter",
            path.display()
        );
    }
}

#[test]
fn every_crate_keeps_the_workspace_lints() {
    for package in packages() {
        let manifest = std::fs::read_to_string(&package.manifest_path).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} has lints of its own",
            package.name
        );
    }
}

#[test]
fn the_compose_file_can_be_read_and_names_its_services() {
    let path = repository().join("docker-compose.yml");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let document: serde_json::Value =
        serde_saphyr::from_str(&text).expect("the compose file is YAML");
    let all = document["services"].as_object().expect("services");
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    for expected in ["postgres", "collector", "tidemark"] {
        assert!(
            names.iter().any(|name| name.starts_with(expected)),
            "no {expected} among {names:?}"
        );
    }
    for (name, described) in all {
        assert!(
            !described["image"].is_null() || !described["build"].is_null(),
            "{name} has neither image nor build"
        );
        let needed: Vec<&str> = match &described["depends_on"] {
            serde_json::Value::Object(map) => map.keys().map(String::as_str).collect(),
            serde_json::Value::Array(listed) => listed.iter().filter_map(|n| n.as_str()).collect(),
            _ => Vec::new(),
        };
        for other in needed {
            assert!(
                all.contains_key(other),
                "{name} depends on {other}, which is no service"
            );
        }
    }
    assert!(repository().join("Dockerfile").is_file(), "no Dockerfile");
}
