//! Addresses of a model server's operations.

use reqwest::Url;

/// `{base}/{path}`, with the base's query, which one vendor needs. The error says what is wrong with the base and repeats nothing of it.
pub(super) fn endpoint(base: &str, path: &[&str]) -> Result<Url, &'static str> {
    let mut url = Url::parse(base).map_err(|_| "it is no URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must hold no credentials; the key has a setting of its own");
    }
    url.path_segments_mut()
        .map_err(|()| "it has no path")?
        .pop_if_empty()
        .extend(path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_path_is_appended_whatever_the_base_ends_with() {
        for (base, url) in [
            ("http://a/v1", "http://a/v1/chat/completions"),
            ("http://a/v1/", "http://a/v1/chat/completions"),
            ("https://a:8443", "https://a:8443/chat/completions"),
            (
                "https://a/x?api-version=3",
                "https://a/x/chat/completions?api-version=3",
            ),
        ] {
            assert_eq!(
                endpoint(base, &["chat", "completions"]).unwrap().as_str(),
                url
            );
        }
    }

    #[test]
    fn a_base_that_cannot_work_is_refused_without_being_repeated() {
        for base in [
            "",
            "a/v1",
            "ftp://a",
            "http://name:s3cret@a/v1",
            "mailto:x@y",
        ] {
            let error = endpoint(base, &["embeddings"]).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
