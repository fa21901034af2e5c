//! Whom a request comes from, once that is proven.

use super::scope::{Scope, Scopes};
use crate::ids::{TenantId, UserName};

/// Whom a request comes from: a tenant, with what it may do and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The tenant.
    pub tenant: TenantId,
    /// What it may do.
    pub scopes: Scopes,
    /// The user it asks for where it names none.
    pub user: UserName,
    /// It may name no other user; else any of the tenant's.
    pub bound: bool,
}

/// Something may not be done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The scope it needs is not among those of the principal.
    #[error("the scope {} is needed", .0.as_str())]
    LacksScope(Scope),
    /// The principal is good for one user and names another.
    #[error("whoever asks is bound to another user")]
    AnotherUser,
    /// It concerns the installation as a whole, and the principal's tenant is not the operator's own.
    #[error("the tenant default is the only one that may")]
    NotOperator,
}

impl Principal {
    /// Whoever can connect to a server without authentication: everything, for any user of the default tenant.
    pub fn anybody() -> Self {
        Self {
            tenant: TenantId::DEFAULT,
            scopes: Scopes::all(),
            user: UserName::default_user(),
            bound: false,
        }
    }

    /// Whether what needs `scope` may be done.
    ///
    /// # Errors
    /// [`Denied::LacksScope`].
    pub fn permit(&self, scope: Scope) -> Result<(), Denied> {
        if self.scopes.contains(scope) {
            Ok(())
        } else {
            Err(Denied::LacksScope(scope))
        }
    }

    /// Whether what concerns the installation as a whole may be done. The default tenant is the operator's own.
    ///
    /// # Errors
    /// [`Denied::LacksScope`] and [`Denied::NotOperator`].
    pub fn permit_operator(&self) -> Result<(), Denied> {
        self.permit(Scope::Admin)?;
        if self.tenant == TenantId::DEFAULT {
            Ok(())
        } else {
            Err(Denied::NotOperator)
        }
    }

    /// The same for that user alone.
    #[must_use]
    pub fn bound_to(&self, user: UserName) -> Self {
        Self {
            user,
            bound: true,
            ..self.clone()
        }
    }

    /// For whom it asks, when it names `named`: whom it names, if it may, or its own user.
    ///
    /// # Errors
    /// [`Denied::AnotherUser`].
    pub fn asks_for(&self, named: Option<UserName>) -> Result<UserName, Denied> {
        match named {
            Some(named) if self.bound && named != self.user => Err(Denied::AnotherUser),
            Some(named) => Ok(named),
            None => Ok(self.user.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn user(name: &str) -> Option<UserName> {
        name.parse().ok()
    }

    #[test]
    fn a_bound_principal_asks_for_its_user_alone() {
        let bound = Principal::anybody().bound_to("ada".parse().unwrap());
        assert_eq!(bound.asks_for(None).ok(), user("ada"));
        assert_eq!(bound.asks_for(user("ada")).ok(), user("ada"));
        for other in ["bob", "Ada", "default"] {
            assert_eq!(bound.asks_for(user(other)), Err(Denied::AnotherUser));
        }
    }

    #[test]
    fn a_principal_that_is_bound_to_nobody_asks_for_whom_it_names() {
        let service = Principal::anybody();
        assert_eq!(service.asks_for(user("bob")).ok(), user("bob"));
        assert_eq!(service.asks_for(None), Ok(UserName::default_user()));
        let administrator = Principal {
            user: "ada".parse().unwrap(),
            ..Principal::anybody()
        };
        assert_eq!(administrator.asks_for(user("bob")).ok(), user("bob"));
        assert_eq!(administrator.asks_for(None).ok(), user("ada"));
    }

    #[test]
    fn only_what_a_scope_covers_is_permitted() {
        for has in Scope::ALL {
            let principal = Principal {
                scopes: [has].into_iter().collect(),
                ..Principal::anybody()
            };
            for needed in Scope::ALL {
                let expected = if has == needed {
                    Ok(())
                } else {
                    Err(Denied::LacksScope(needed))
                };
                assert_eq!(principal.permit(needed), expected);
            }
        }
    }

    #[test]
    fn the_installation_is_the_default_tenants_admin_to_look_after() {
        assert_eq!(Principal::anybody().permit_operator(), Ok(()));
        let elsewhere = Principal {
            tenant: TenantId(Uuid::max()),
            ..Principal::anybody()
        };
        assert_eq!(elsewhere.permit_operator(), Err(Denied::NotOperator));
        let without = Principal {
            scopes: [Scope::Chat].into_iter().collect(),
            ..Principal::anybody()
        };
        assert_eq!(
            without.permit_operator(),
            Err(Denied::LacksScope(Scope::Admin))
        );
    }
}
