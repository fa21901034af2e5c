//! Credentials in addresses and headers.

use std::ops::Range;

use super::issued::token_len;
use super::labelled::value::is_plain;

/// The login of an address is no longer than this, in bytes. Ours: it bounds the work on a hostile text.
const LONGEST_LOGIN: usize = 2_048;

/// Addresses that whoever knows them may post to: what follows is the secret.
#[rustfmt::skip]
const WEBHOOKS: [&str; 12] = [
    "hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/", "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/", "outlook.office.com/webhook/", ".webhook.office.com/", "hooks.zapier.com/hooks/catch/",
    "maker.ifttt.com/trigger/", "open.feishu.cn/open-apis/bot/v2/hook/", "qyapi.weixin.qq.com/cgi-bin/webhook/send?",
    "oapi.dingtalk.com/robot/send?",
];
/// Parameters of a query that hold a signature.
const SIGNATURES: [&str; 4] = [
    "sig=",
    "signature=",
    "x-amz-signature=",
    "x-goog-signature=",
];

pub(super) fn authorisation(text: &str, lower: &str, found: &mut Vec<Range<usize>>) {
    for scheme in ["bearer ", "basic "] {
        for (at, _) in lower.match_indices(scheme) {
            let start = at + scheme.len();
            let len = token_len(&text[start..]);
            let value = &text[start..start + len];
            let plain = len < 16 && value.split(['-', '/', '_', '.']).all(is_plain);
            if len >= 8 && !plain {
                found.push(start..start + len);
            }
        }
    }
    for (at, header) in lower.match_indices("authorization:") {
        let start = at + header.len();
        // Two colons part the names of a path in program text.
        if text[start..].starts_with(':') {
            continue;
        }
        let line = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let value = text[start..line].trim();
        // "Authorization: Bearer …" in an explanation has no value to hide.
        if value.split_whitespace().any(|word| word.len() >= 8) {
            let lead = text[start..line].len() - text[start..line].trim_start().len();
            found.push(start + lead..start + lead + value.len());
        }
    }
}

/// The password of `scheme://user:password@host`, or a token that stands there alone.
pub(super) fn logins(text: &str, found: &mut Vec<Range<usize>>) {
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let most = text.floor_char_boundary(start.saturating_add(LONGEST_LOGIN));
        let end = text[start..most]
            .find(|c: char| c.is_whitespace() || "/\"'<>`，。".contains(c))
            .map_or(most, |i| start + i);
        let authority = &text[start..end];
        let Some((login, _)) = authority.rsplit_once('@') else {
            continue;
        };
        if let Some((user, password)) = login.split_once(':') {
            let from = start + user.len() + 1;
            found.push(from..from + password.len());
        } else if login.len() >= 20 && login.bytes().any(|b| b.is_ascii_digit()) {
            found.push(start..start + login.len());
        }
    }
}

pub(super) fn webhooks(text: &str, lower: &str, found: &mut Vec<Range<usize>>) {
    for marks in [&WEBHOOKS[..], &SIGNATURES[..]] {
        for mark in marks {
            let mut covered = 0;
            for (at, _) in lower.match_indices(mark) {
                let start = at + mark.len();
                let signature = mark.ends_with('=');
                if at < covered || signature && !lower[..at].ends_with(['?', '&']) {
                    continue;
                }
                let len = token_or_query_len(&text[start..], signature);
                covered = start + len;
                if len >= 8 {
                    found.push(start..covered);
                }
            }
        }
    }
}

/// How long an address goes on: to its end, or with `one` to the end of the parameter.
fn token_or_query_len(text: &str, one: bool) -> usize {
    let end = text
        .find(|c: char| {
            !(c.is_ascii_alphanumeric() || "_-.~/%+=:@".contains(c) || (!one && "?&#".contains(c)))
        })
        .unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ':']).len()
}
