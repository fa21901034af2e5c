//! Migrations are embedded: a new file must rebuild the stores.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
