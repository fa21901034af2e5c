//! Credentials are taken out before anything is remembered: a memory is shown to models and searched for years.
//!
//! What is recognised: tokens by the prefixes their issuers document and secrets beside a key id that tells what they are, bearer and basic
//! authorisation, JSON web tokens, private keys in PEM, passwords in addresses and in the arguments of commands, addresses of webhooks,
//! payment cards by their check digit (ISO/IEC 7812, Luhn), account numbers that are introduced as such, recovery codes and seed phrases, and
//! whatever a person calls a password, in English and Chinese. Where it is not sure it takes out more rather than less.
//!
//! The recognisers read the text in its compatibility form (full-width letters and digits are letters and digits); what stays is as it was.
//! Each looks at a part of the text a bounded number of times, so the work grows with the length alone.

mod addresses;
mod codes;
mod commands;
mod folded;
mod issued;
mod labelled;
mod numbers;

/// What stands in place of a credential.
pub const MARK: &str = "[redacted]";

/// A text without its credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redacted {
    /// The text with [`MARK`] in each place.
    pub text: String,
    /// Whether there was any.
    pub found: bool,
}

/// Takes credentials out of a text. Redact a whole message before cutting it into chunks, else a key may be cut in two.
pub fn redact(original: &str) -> Redacted {
    let folded = folded::Folded::new(original);
    let (text, lower) = (folded.text.as_str(), folded.lower.as_str());
    let mut found = Vec::new();
    issued::private_keys(text, &mut found);
    issued::tokens(text, &mut found);
    addresses::authorisation(text, lower, &mut found);
    addresses::logins(text, &mut found);
    addresses::webhooks(text, lower, &mut found);
    numbers::cards(text, &mut found);
    numbers::accounts(text, lower, &mut found);
    commands::passwords(text, &mut found);
    codes::codes(text, lower, &mut found);
    codes::seeds(text, lower, &mut found);
    labelled::values(labelled::Text { text, lower }, &mut found);
    found.retain(|range| !range.is_empty() && !text[range.clone()].starts_with(MARK));
    found.sort_by_key(|range| (range.start, range.end));
    let mut out = String::with_capacity(original.len());
    let mut at = 0;
    for range in found.iter().map(|range| folded.origin(range)) {
        if range.start >= at {
            out.push_str(&original[at..range.start]);
            out.push_str(MARK);
        }
        at = at.max(range.end);
    }
    out.push_str(&original[at..]);
    Redacted {
        text: out,
        found: !found.is_empty(),
    }
}

#[cfg(test)]
mod tests;
