//! Tenants and their API keys.

use tidemark_domain::identity::PassSecret;
use tidemark_domain::ids::{TenantId, TenantName};

use super::{Operation, operation};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        operation!(w.make_tenant(&name, fresh, now) after {
            let name: TenantName = w.ids.uuid().to_string().parse().unwrap();
            let (fresh, now) = (TenantId(w.ids.uuid()), w.now());
        }),
        operation!(w.find_tenant(&name) after { let name = TenantName::default_tenant(); }),
        operation!(w.tenants() after {}),
        operation!(w.add_key(key) after { let key = w.new_key(TenantId::DEFAULT); }),
        operation!(w.key(id) after { let id = w.added(TenantId::DEFAULT).await.key.id; }),
        operation!(w.keys(TenantId::DEFAULT) after {}),
        operation!(w.rotate_key(TenantId::DEFAULT, id, now, next) after {
            let id = w.added(TenantId::DEFAULT).await.key.id;
            let (now, next) = (w.now(), w.new_key(TenantId::DEFAULT));
        }),
        operation!(w.revoke_key(TenantId::DEFAULT, id, now) after {
            let (id, now) = (w.added(TenantId::DEFAULT).await.key.id, w.now());
        }),
        operation!(w.pass_secret(TenantId::DEFAULT) after {}),
        operation!(w.make_pass_secret(TenantId::DEFAULT, fresh, now) after {
            let (fresh, now) = (PassSecret([7; 32]), w.now());
        }),
    ]
}
