//! The files of the pages, in the binary.

use std::io::Write;
use std::sync::{LazyLock, OnceLock};

use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// A file, as it is and compressed.
pub(super) struct Asset {
    name: &'static str,
    pub(super) content_type: &'static str,
    pub(super) plain: Representation,
    compressed: OnceLock<Option<Representation>>,
}

/// The bytes of a file in one coding.
pub(super) struct Representation {
    pub(super) bytes: Bytes,
    /// Their entity tag: it changes with them.
    pub(super) tag: HeaderValue,
}

impl Representation {
    fn new(bytes: Bytes) -> Self {
        let digest = Sha256::digest(&bytes);
        let hash = u64::from_be_bytes(std::array::from_fn(|i| digest[i]));
        let tag = HeaderValue::from_str(&format!("\"{hash:016x}\""))
            .unwrap_or(HeaderValue::from_static("\"\""));
        Self { bytes, tag }
    }
}

impl Asset {
    pub(super) fn new(name: &'static str, bytes: impl Into<Bytes>) -> Self {
        Self {
            name,
            content_type: content_type(name),
            plain: Representation::new(bytes.into()),
            compressed: OnceLock::new(),
        }
    }

    /// In gzip, made at the first request for it; none when that saves nothing.
    pub(super) fn compressed(&self) -> Option<&Representation> {
        let compress = || {
            let bytes = gzip(&self.plain.bytes)?;
            (bytes.len() < self.plain.bytes.len()).then(|| Representation::new(bytes.into()))
        };
        self.compressed.get_or_init(compress).as_ref()
    }
}

fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

macro_rules! embed {
    ($($name:literal),+ $(,)?) => {
        vec![$(Asset::new($name, &include_bytes!(concat!("../../web/assets/", $name))[..])),+]
    };
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let mut assets = embed![
        "answer.css",
        "api.js",
        "app.js",
        "change_card.js",
        "change_list.js",
        "composer.css",
        "composer.js",
        "conversation.css",
        "conversation.js",
        "dialog.js",
        "dom.js",
        "history.js",
        "i18n.js",
        "icon.svg",
        "icons.svg",
        "markdown.js",
        "markdown_blocks.js",
        "memories.js",
        "memory_api.js",
        "memory_card.js",
        "memory_history.js",
        "memory_list.js",
        "memory_panel.js",
        "outbox.js",
        "panel.css",
        "panel.js",
        "question_editor.js",
        "recall_view.js",
        "scroll.js",
        "sidebar.css",
        "sidebar.js",
        "sign_in.js",
        "storage.js",
        "stream_slots.js",
        "strings.js",
        "strings_en.js",
        "strings_zh.js",
        "style.css",
        "theme.js",
        "theme_first.js",
        "timeline.css",
        "timeline.js",
        "turn_stream.js",
        "turn_view.js",
        "user_data.js",
        "words.js",
    ];
    assets.push(Asset::new("docs.css", &include_bytes!("docs.css")[..]));
    assets
});

/// The chat page.
pub(super) static INDEX: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "index.html",
        &include_bytes!("../../web/assets/index.html")[..],
    )
});

/// The file of that name.
pub(super) fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served_with_its_type() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/web/assets");
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "index.html")
            .collect();
        names.push("docs.css".to_owned());
        names.sort();
        let mut served: Vec<_> = ASSETS.iter().map(|asset| asset.name.to_owned()).collect();
        served.sort();
        assert_eq!(served, names);
        assert!(
            ASSETS
                .iter()
                .all(|asset| asset.content_type != "application/octet-stream")
        );
    }

    #[test]
    fn no_module_waits_until_another_names_it() {
        let index = std::str::from_utf8(&INDEX.plain.bytes).unwrap();
        let scripts = content_type("app.js");
        for asset in ASSETS.iter().filter(|one| one.content_type == scripts) {
            let told = index.contains(&format!("\"/assets/{}\"", asset.name));
            assert!(told, "index.html does not name {}", asset.name);
        }
    }
}
