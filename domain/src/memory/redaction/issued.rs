//! Tokens and keys that are known by their own form, as their issuers document it.

use std::ops::Range;

/// Prefixes of issued tokens, with the fewest characters that follow.
#[rustfmt::skip]
const PREFIXES: &[(&str, usize)] = &[
    // Model providers.
    ("sk-", 16), ("hf_", 20), ("gsk_", 20), ("r8_", 20), ("pplx-", 20), ("xai-", 20), ("nvapi-", 20), ("tvly-", 16),
    // Payment.
    ("sk_live_", 8), ("sk_test_", 8), ("rk_live_", 8), ("rk_test_", 8), ("whsec_", 16), ("sq0atp-", 16), ("sq0csp-", 16),
    // Source code and packages.
    ("ghp_", 16), ("gho_", 16), ("ghu_", 16), ("ghs_", 16), ("ghr_", 16), ("github_pat_", 16), ("glpat-", 16), ("glrt-", 16),
    ("gldt-", 16), ("npm_", 30), ("pypi-", 16), ("rubygems_", 20), ("dckr_pat_", 16),
    // Work tools.
    ("xoxa-", 8), ("xoxb-", 8), ("xoxc-", 8), ("xoxd-", 8), ("xoxe-", 8), ("xoxe.", 8), ("xoxp-", 8), ("xoxr-", 8),
    ("xoxs-", 8), ("xapp-", 8), ("lin_api_", 16), ("ntn_", 20), ("figd_", 16), ("shpat_", 16), ("shpss_", 16), ("ATATT3", 20),
    // Clouds and operations.
    ("AIza", 30), ("ya29.", 20), ("GOCSPX-", 16), ("dop_v1_", 20), ("hvs.", 20), ("hvb.", 20), ("SG.", 20), ("sntrys_", 20),
    ("glsa_", 20), ("dp.st.", 20), ("tskey-", 16), ("PMAK-", 20), ("AGE-SECRET-KEY-", 20),
    // Ours.
    ("tmk_", 8),
];
/// Prefixes of AWS key ids; sixteen capitals and digits follow.
const AWS: [&str; 2] = ["AKIA", "ASIA"];
/// An AWS secret access key is as long as this.
const AWS_SECRET: usize = 40;

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.+/=~".contains(c)
}

/// The token that starts `text`; a point at its end is the sentence's.
pub(super) fn token_len(text: &str) -> usize {
    let end = text.find(|c| !is_token(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('.').len()
}

pub(super) fn tokens(text: &str, found: &mut Vec<Range<usize>>) {
    let mut before = None;
    let mut skip_to = 0;
    let mut aws = false;
    // Where the run of token characters ends that `at` lies in: looked for once a run.
    let mut run_end = 0;
    for (at, c) in text.char_indices() {
        let starts = before.is_none_or(|b: char| !b.is_ascii_alphanumeric());
        before = Some(c);
        if !starts || !c.is_ascii_alphabetic() || at < skip_to {
            continue;
        }
        let rest = &text[at..];
        if at >= run_end {
            run_end = at + token_len(rest);
        }
        let len = run_end - at;
        let token = &rest[..len];
        let key_id = is_aws_id(token);
        aws |= key_id;
        if key_id || is_prefixed(token) || is_web_token(token) {
            found.push(at..at + len);
            skip_to = at + len;
        }
    }
    bot_tokens(text, found);
    if aws {
        aws_secrets(text, found);
    }
}

fn is_prefixed(token: &str) -> bool {
    PREFIXES.iter().any(|(prefix, fewest)| {
        token
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.len() >= *fewest)
    })
}

fn is_aws_id(token: &str) -> bool {
    AWS.iter().any(|prefix| {
        token.strip_prefix(prefix).is_some_and(|rest| {
            rest.len() >= 16
                && rest
                    .bytes()
                    .take(16)
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        })
    })
}

/// A JSON web token (RFC 7519): its header is the Base64 of `{"`.
fn is_web_token(token: &str) -> bool {
    token.starts_with("eyJ") && token.len() >= 20 && token.matches('.').nth(1).is_some()
}

/// Secret access keys have no form of their own but their length, so they are known by the key id in the same text.
fn aws_secrets(text: &str, found: &mut Vec<Range<usize>>) {
    for run in runs(text, |b| b.is_ascii_alphanumeric() || b"+/".contains(&b)) {
        let value = &text[run.clone()];
        if value.len() == AWS_SECRET
            && value.bytes().any(|b| b.is_ascii_lowercase())
            && value.bytes().any(|b| b.is_ascii_uppercase())
        {
            found.push(run);
        }
    }
}

/// Bot tokens of Telegram, `<id>:<35 characters>`, and of Discord, three parts whose first is the Base64 of an id.
fn bot_tokens(text: &str, found: &mut Vec<Range<usize>>) {
    for run in runs(text, |b| b.is_ascii_alphanumeric() || b"_-:.".contains(&b)) {
        let value = text[run.clone()].trim_end_matches(['.', ':']);
        let telegram = value.split_once(':').is_some_and(|(id, key)| {
            let id = id.strip_prefix("bot").unwrap_or(id);
            (8..=12).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_digit())
                && key.len() == 35
                && !key.contains([':', '.'])
        });
        let parts = value.split('.').map(str::len);
        let discord = parts.clone().count() == 3
            && value.starts_with(['M', 'N', 'O'])
            && !value.contains(':')
            && parts
                .zip([23..=28, 6..=7, 27..=40])
                .all(|(len, wanted)| wanted.contains(&len));
        if telegram || discord {
            found.push(run.start..run.start + value.len());
        }
    }
}

/// The longest parts of a text that consist of such bytes, which must be ASCII.
fn runs(text: &str, is_part: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut start = None;
    for (at, b) in text.bytes().enumerate() {
        match (is_part(b), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                all.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    all.extend(start.map(|from| from..text.len()));
    all
}

/// Private keys in PEM (RFC 7468).
pub(super) fn private_keys(text: &str, found: &mut Vec<Range<usize>>) {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "-----END ";
    let mut from = 0;
    while let Some(start) = text[from..].find(BEGIN).map(|i| from + i) {
        let head = start + BEGIN.len();
        from = head;
        let Some(label) = text[head..].find("-----").map(|i| &text[head..head + i]) else {
            continue;
        };
        if !label.contains("PRIVATE KEY") {
            continue;
        }
        // A key that is cut off is a key all the same.
        let end = text[head..].find(END).map_or(text.len(), |i| {
            let tail = head + i + END.len();
            text[tail..]
                .find("-----")
                .map_or(text.len(), |j| tail + j + 5)
        });
        found.push(start..end);
        from = end;
    }
}
