//! The reference page: the OpenAPI document as HTML, without a script.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::openapi;

/// The whole page.
pub(super) fn page() -> String {
    render(&openapi::document().unwrap_or_default())
}

fn render(document: &Value) -> String {
    let mut html = String::new();
    let info = &document["info"];
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} API</title>\n\
         <link rel=\"icon\" type=\"image/svg+xml\" href=\"/assets/icon.svg\">\n\
         <link rel=\"stylesheet\" href=\"/assets/docs.css\">\n</head>\n<body>\n<main>\n\
         <h1>{title} API</h1>\n<p>Version {version} · <a href=\"/openapi.json\">OpenAPI document</a> · <a href=\"/\">Chat</a></p>\n<p>{description}</p>\n",
        title = text(&info["title"]),
        version = text(&info["version"]),
        description = prose(&info["description"]),
    );
    let tags = list(&document["tags"]);
    html.push_str("<nav>");
    for tag in tags {
        let _ = write!(
            html,
            "<a href=\"#{name}\">{name}</a>",
            name = text(&tag["name"])
        );
    }
    html.push_str("<a href=\"#schemas\">schemas</a></nav>\n");
    for tag in tags {
        let name = &tag["name"];
        let _ = writeln!(
            html,
            "<h2 id=\"{name}\">{name}</h2>\n<p>{about}</p>",
            name = text(name),
            about = prose(&tag["description"])
        );
        for (path, methods) in fields(&document["paths"]) {
            for (method, operation) in fields(methods) {
                if list(&operation["tags"]).contains(name) {
                    write_operation(&mut html, document, path, method, operation);
                }
            }
        }
    }
    html.push_str("<h2 id=\"schemas\">Schemas</h2>\n");
    for (name, schema) in fields(&document["components"]["schemas"]) {
        write_schema(&mut html, name, schema);
    }
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn write_operation(
    html: &mut String,
    document: &Value,
    path: &str,
    method: &str,
    operation: &Value,
) {
    let _ = writeln!(
        html,
        "<details id=\"{id}\"><summary><span class=\"method\">{method}</span><code>{path}</code><span class=\"what\">{summary}</span></summary><div>",
        id = text(&operation["operationId"]),
        method = escape(method),
        path = escape(path),
        summary = prose(&operation["summary"]),
    );
    if operation["description"].is_string() {
        let _ = writeln!(html, "<p>{}</p>", prose(&operation["description"]));
    }
    let parameters = list(&operation["parameters"]);
    if !parameters.is_empty() {
        html.push_str("<h3>Parameters</h3>\n");
        let rows = parameters.iter().map(|p| {
            let p = resolved(document, p);
            let place = format!("{} ({})", kind(&p["schema"]), text(&p["in"]));
            [
                format!("<code>{}</code>", text(&p["name"])),
                required(&p["required"]),
                place,
                prose(&p["description"]),
            ]
        });
        write_table(html, ["name", "", "type", ""], rows);
    }
    let body = &operation["requestBody"]["content"];
    for (media, content) in fields(body) {
        let _ = writeln!(
            html,
            "<h3>Body</h3>\n<p>{} as <code>{}</code></p>",
            kind(&content["schema"]),
            escape(media)
        );
        write_examples(html, content);
    }
    html.push_str("<h3>Responses</h3>\n");
    let responses = || {
        fields(&operation["responses"])
            .map(|(status, response)| (status, resolved(document, response)))
    };
    let rows = responses().map(|(status, response)| {
        let shapes: Vec<String> = fields(&response["content"])
            .map(|(media, content)| {
                format!(
                    "{} as <code>{}</code>",
                    kind(&content["schema"]),
                    escape(media)
                )
            })
            .collect();
        let headers: Vec<String> = fields(&response["headers"])
            .map(|(name, _)| format!("<code>{}</code>", escape(name)))
            .collect();
        [
            format!("<code>{}</code>", escape(status)),
            shapes.join(", "),
            headers.join(" "),
            prose(&response["description"]),
        ]
    });
    write_table(html, ["status", "content", "headers", ""], rows);
    for (_, response) in responses().filter(|(status, _)| status.starts_with('2')) {
        fields(&response["content"]).for_each(|(_, content)| write_examples(html, content));
    }
    html.push_str("</div></details>\n");
}

/// Real values, each under what it is called.
fn write_examples(html: &mut String, content: &Value) {
    for (name, example) in fields(&content["examples"]) {
        let value = &example["value"];
        let shown = match value.as_str() {
            Some(lines) => lines.to_owned(),
            None => serde_json::to_string_pretty(value).unwrap_or_default(),
        };
        let title = example["summary"].as_str().unwrap_or(name);
        let _ = writeln!(
            html,
            "<h3>Example: {}</h3>\n<pre>{}</pre>",
            escape(title),
            escape(&shown)
        );
    }
}

/// What a reference leads to, or the value itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
    reference
        .and_then(|pointer| document.pointer(pointer))
        .unwrap_or(value)
}

fn write_schema(html: &mut String, name: &str, schema: &Value) {
    let _ = writeln!(
        html,
        "<details id=\"schema-{name}\"><summary><code>{name}</code><span class=\"what\">{about}</span></summary><div>",
        name = escape(name),
        about = prose(&schema["description"]),
    );
    let required_fields = list(&schema["required"]);
    if schema["properties"].is_object() {
        let rows = fields(&schema["properties"]).map(|(field, property)| {
            let is_required = Value::from(required_fields.contains(&Value::from(field.as_str())));
            [
                format!("<code>{}</code>", escape(field)),
                required(&is_required),
                kind(property),
                prose(&property["description"]),
            ]
        });
        write_table(html, ["field", "", "type", ""], rows);
    } else {
        let _ = writeln!(html, "<p>{}</p>", kind(schema));
    }
    html.push_str("</div></details>\n");
}

fn write_table(html: &mut String, head: [&str; 4], rows: impl Iterator<Item = [String; 4]>) {
    html.push_str("<div class=\"scroll\"><table><tr>");
    for cell in head {
        let _ = write!(html, "<th>{cell}</th>");
    }
    html.push_str("</tr>\n");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            let _ = write!(html, "<td>{cell}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table></div>\n");
}

fn required(value: &Value) -> String {
    if value == &Value::Bool(true) {
        "required".to_owned()
    } else {
        String::new()
    }
}

/// What a schema is, on one line.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next()) {
        return format!("<a href=\"#schema-{name}\">{name}</a>", name = escape(name));
    }
    if schema["items"].is_object() {
        return format!("list of {}", kind(&schema["items"]));
    }
    for several in ["oneOf", "anyOf"] {
        if schema[several].is_array() {
            return list(&schema[several])
                .iter()
                .map(kind)
                .collect::<Vec<_>>()
                .join(" or ");
        }
    }
    if schema["enum"].is_array() {
        let values = list(&schema["enum"])
            .iter()
            .map(|v| format!("<code>{}</code>", text(v)));
        return values.collect::<Vec<_>>().join(" ");
    }
    let name = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect::<Vec<_>>().join(" or "),
        one => text(one),
    };
    match schema["format"].as_str() {
        Some(format) => format!("{name} ({})", escape(format)),
        None => name,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

/// Text in which `this` is code.
fn prose(value: &Value) -> String {
    let mut html = String::new();
    for (i, part) in text(value).split('`').enumerate() {
        if i > 0 {
            html.push_str(if i % 2 == 1 { "<code>" } else { "</code>" });
        }
        html.push_str(part);
    }
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_and_schema_is_on_the_page_and_no_script() {
        let (page, document) = (page(), openapi::document().unwrap());
        for (path, methods) in fields(&document["paths"]) {
            for (_, operation) in fields(methods) {
                let id = operation["operationId"].as_str().unwrap();
                assert!(page.contains(&format!("<details id=\"{id}\">")), "{path}");
            }
        }
        for (name, _) in fields(&document["components"]["schemas"]) {
            assert!(page.contains(&format!("id=\"schema-{name}\"")), "{name}");
        }
        assert!(
            !page.contains("<script")
                && !page.contains("style=")
                && page.matches("<code>").count() == page.matches("</code>").count()
        );
    }

    #[test]
    fn what_is_written_in_the_document_stays_text() {
        let document = serde_json::json!({"info": {"title": "<b>", "description": "`a < b`"}});
        let page = render(&document);
        assert!(
            page.contains("&lt;b&gt;")
                && page.contains("<code>a &lt; b</code>")
                && !page.contains("<b>")
        );
    }
}
