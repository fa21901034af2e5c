//! Which changes of the API document break clients that were built from an earlier one.
//!
//! What is added passes: operations, optional fields and parameters, responses, values of enumerations; clients are told to pass over what they
//! do not know. What is taken away, renamed, newly demanded or narrowed breaks somebody.

use std::collections::BTreeSet;

use serde_json::Value;

/// Who writes the value: what a client may send can only widen, what it may be sent can only narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Sent,
    Given,
}

/// Every change from `released` to `present` that breaks a client, in words.
pub fn breaking_changes(released: &Value, present: &Value) -> Vec<String> {
    let mut check = Check {
        old: released,
        new: present,
        found: Vec::new(),
        seen: BTreeSet::new(),
    };
    for (path, methods) in fields(&released["paths"]) {
        for (method, old) in fields(methods) {
            let place = format!("{} {path}", method.to_uppercase());
            match present["paths"][path].get(method) {
                None => check.report(&place, "is gone"),
                Some(new) => check.operation(&place, old, new),
            }
        }
    }
    for (name, _) in fields(&released["components"]["schemas"]) {
        if present["components"]["schemas"].get(name).is_none() {
            check.report(name, "is gone from the schemas");
        }
    }
    check.found
}

struct Check<'a> {
    old: &'a Value,
    new: &'a Value,
    found: Vec<String>,
    /// Pairs of schemas that are compared already: they may hold themselves.
    seen: BTreeSet<(String, String, Way)>,
}

impl<'a> Check<'a> {
    fn report(&mut self, place: &str, what: impl AsRef<str>) {
        self.found.push(format!("{place} {}", what.as_ref()));
    }

    fn operation(&mut self, place: &str, old: &'a Value, new: &'a Value) {
        if old["operationId"] != new["operationId"] {
            self.report(place, format!("has another id: {}", new["operationId"]));
        }
        self.parameters(place, old, new);
        self.request(place, &old["requestBody"], &new["requestBody"]);
        for (status, response) in fields(&old["responses"]) {
            let place = format!("{place} {status}");
            match new["responses"].get(status) {
                None => self.report(&place, "is gone"),
                Some(present) => {
                    let (old, new) = (resolved(self.old, response), resolved(self.new, present));
                    for (name, _) in fields(&old["headers"]) {
                        if new["headers"].get(name).is_none() {
                            self.report(&place, format!("has no header {name} any more"));
                        }
                    }
                    self.contents(&place, &old["content"], &new["content"], Way::Given);
                }
            }
        }
    }

    fn parameters(&mut self, place: &str, old: &'a Value, new: &'a Value) {
        let (before, after) = (parameters(self.old, old), parameters(self.new, new));
        let same = |a: &Value, b: &Value| a["in"] == b["in"] && a["name"] == b["name"];
        for parameter in &before {
            let place = format!("{place} parameter {}", text(&parameter["name"]));
            match after.iter().find(|other| same(parameter, other)) {
                None => self.report(&place, "is gone"),
                Some(present) => {
                    if is(&present["required"]) && !is(&parameter["required"]) {
                        self.report(&place, "is required now");
                    }
                    self.schema(&place, &parameter["schema"], &present["schema"], Way::Sent);
                }
            }
        }
        for parameter in after {
            if is(&parameter["required"]) && !before.iter().any(|other| same(parameter, other)) {
                self.report(
                    place,
                    format!("requires a new parameter {}", text(&parameter["name"])),
                );
            }
        }
    }

    fn request(&mut self, place: &str, old: &'a Value, new: &'a Value) {
        let (old, new) = (resolved(self.old, old), resolved(self.new, new));
        if is(&new["required"]) && !is(&old["required"]) {
            self.report(place, "requires a body now");
        }
        if old.is_object() && !new.is_object() {
            self.report(place, "takes no body any more");
        }
        self.contents(
            &format!("{place} body"),
            &old["content"],
            &new["content"],
            Way::Sent,
        );
    }

    fn contents(&mut self, place: &str, old: &'a Value, new: &'a Value, way: Way) {
        for (media, content) in fields(old) {
            match new.get(media) {
                None => self.report(place, format!("is not {media} any more")),
                Some(present) => self.schema(place, &content["schema"], &present["schema"], way),
            }
        }
    }

    fn schema(&mut self, place: &str, old: &'a Value, new: &'a Value, way: Way) {
        if let (Some(a), Some(b)) = (old["$ref"].as_str(), new["$ref"].as_str())
            && !self.seen.insert((a.to_owned(), b.to_owned(), way))
        {
            return;
        }
        let (old, new) = (resolved(self.old, old), resolved(self.new, new));
        self.kind(place, old, new, way);
        self.values(place, old, new, way);
        if way == Way::Sent {
            self.limits(place, old, new);
        }
        self.properties(place, old, new, way);
        for inner in ["items", "additionalProperties"] {
            if old[inner].is_object() && new[inner].is_object() {
                self.schema(&format!("{place}[]"), &old[inner], &new[inner], way);
            }
        }
        for several in ["oneOf", "anyOf", "allOf"] {
            self.choices(place, &old[several], &new[several], way);
        }
        for (value, _) in fields(&old["discriminator"]["mapping"]) {
            if new["discriminator"]["mapping"].get(value).is_none() {
                self.report(place, format!("is never told apart as {value} any more"));
            }
        }
    }

    fn kind(&mut self, place: &str, old: &Value, new: &Value, way: Way) {
        let (before, after) = (types(old), types(new));
        let fits = match way {
            Way::Sent => before.is_subset(&after),
            Way::Given => after.is_subset(&before),
        };
        if !fits {
            self.report(
                place,
                format!("has another type: {after:?} instead of {before:?}"),
            );
        }
        let newly = way == Way::Sent && old["format"].is_null();
        if old["format"] != new["format"] && (newly || !old["format"].is_null()) {
            self.report(place, format!("has another format: {}", new["format"]));
        }
    }

    fn values(&mut self, place: &str, old: &Value, new: &Value, way: Way) {
        let (before, after) = (&old["enum"], &new["enum"]);
        for value in items(before) {
            if after.is_array() && !items(after).contains(value) {
                self.report(place, format!("has no value {value} any more"));
            }
        }
        if before.is_array() && after.is_null() {
            self.report(place, "is no enumeration any more");
        }
        if way == Way::Sent && before.is_null() && after.is_array() {
            self.report(place, "takes some values alone now");
        }
    }

    fn limits(&mut self, place: &str, old: &Value, new: &Value) {
        let narrowed = |name: &str| match (old[name].as_f64(), new[name].as_f64()) {
            (None, after) => after.is_some(),
            (Some(before), Some(after)) if name.starts_with("min") => after > before,
            (Some(before), Some(after)) => after < before,
            (Some(_), None) => false,
        };
        let of_numbers = ["minimum", "maximum"];
        let of_sizes = [
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
        ];
        for name in of_numbers
            .into_iter()
            .chain(of_sizes)
            .filter(|name| narrowed(name))
        {
            self.report(place, format!("has a narrower {name}: {}", new[name]));
        }
        if !new["pattern"].is_null() && new["pattern"] != old["pattern"] {
            self.report(place, format!("has another pattern: {}", new["pattern"]));
        }
        if new["additionalProperties"] == false && old["additionalProperties"] != false {
            self.report(place, "takes no other fields any more");
        }
    }

    fn properties(&mut self, place: &str, old: &'a Value, new: &'a Value, way: Way) {
        for (name, property) in fields(&old["properties"]) {
            let place = format!("{place}.{name}");
            match new["properties"].get(name) {
                None => self.report(&place, "is gone"),
                Some(present) => self.schema(&place, property, present, way),
            }
        }
        let (before, after) = (items(&old["required"]), items(&new["required"]));
        let (from, to, what) = match way {
            Way::Sent => (after, before, "is required now"),
            Way::Given => (before, after, "may be absent now"),
        };
        for name in from.iter().filter(|name| !to.contains(name)) {
            let still_there = new["properties"].get(text(name)).is_some();
            if still_there {
                self.report(&format!("{place}.{}", text(name)), what);
            }
        }
    }

    /// Choices are told apart by the schema they refer to; those without a name by their place.
    fn choices(&mut self, place: &str, old: &'a Value, new: &'a Value, way: Way) {
        for (i, choice) in items(old).iter().enumerate() {
            let present = match choice["$ref"].as_str() {
                Some(name) => items(new).iter().find(|other| other["$ref"] == name),
                None => items(new).get(i),
            };
            match present {
                None => self.report(place, format!("is never {} any more", choice["$ref"])),
                Some(present) => self.schema(place, choice, present, way),
            }
        }
    }
}

fn parameters<'a>(document: &'a Value, operation: &'a Value) -> Vec<&'a Value> {
    let all = items(&operation["parameters"]);
    all.iter().map(|p| resolved(document, p)).collect()
}

fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
    let target = reference.and_then(|pointer| document.pointer(pointer));
    target.map_or(value, |target| resolved(document, target))
}

fn types(schema: &Value) -> BTreeSet<&str> {
    match &schema["type"] {
        Value::Array(several) => several.iter().map(text).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}
