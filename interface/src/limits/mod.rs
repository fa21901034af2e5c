//! How many requests each tenant, key and user may make: decided once it is known who asks, before an operation sees the request.
//!
//! - [`allowance`]: how far each has used what it has
//!
//! The count is that of this process ([ADR 28](../../../docs/adr/0028-limits.md)). It says where it stands in `RateLimit-Policy` and `RateLimit`
//! (draft-ietf-httpapi-ratelimit-headers-11).

mod allowance;

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tidemark_application::ports::turns::Whose;
use tidemark_domain::ids::{KeyId, TenantId, UserName};

use self::allowance::{Allowance, Count};
use crate::app::App;
use crate::auth::{Identity, operations};
use crate::problem::{Code, Problem};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STANDING: HeaderName = HeaderName::from_static("ratelimit");

/// The window of all policies, in seconds.
const WINDOW: u32 = 60;

/// How many requests a minute each may make; 0 for any number.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerMinute {
    /// All of a tenant together.
    pub tenant: u32,
    /// All with one key.
    pub key: u32,
    /// All for one user.
    pub user: u32,
}

/// The setting that limits the requests of those.
fn setting(whose: Whose) -> &'static str {
    match whose {
        Whose::User => "user_requests_per_minute",
        Whose::Key => "key_requests_per_minute",
        Whose::Tenant => "tenant_requests_per_minute",
    }
}

/// Counts requests.
#[derive(Debug)]
pub struct RequestLimits {
    user: Option<Allowance<(TenantId, UserName)>>,
    key: Option<Allowance<KeyId>>,
    tenant: Option<Allowance<TenantId>>,
}

/// Where whoever asks stands after a request.
#[derive(Clone, Debug)]
pub struct Standing {
    /// What `RateLimit-Policy` says.
    policies: String,
    /// The policy nearest to its end.
    nearest: Nearest,
}

#[derive(Clone, Copy, Debug)]
struct Nearest {
    whose: Whose,
    quota: NonZeroU32,
    remaining: u32,
    /// Until all of the quota is there again; of a refusal, until one request is admitted again.
    reset: Duration,
    refused: bool,
}

impl Nearest {
    fn after(whose: Whose, count: Count, quota: NonZeroU32) -> Self {
        let (remaining, reset, refused) = match count {
            Count::Admitted {
                remaining,
                whole_in,
            } => (remaining, whole_in, false),
            Count::Refused { wait } => (0, wait, true),
        };
        Self {
            whose,
            quota,
            remaining,
            reset,
            refused,
        }
    }
}

impl RequestLimits {
    /// That hold each to what it may; none where each may do as much as it likes.
    pub fn new(per_minute: PerMinute) -> Option<Self> {
        let PerMinute { tenant, key, user } = per_minute;
        (tenant > 0 || key > 0 || user > 0).then(|| Self {
            user: allowance(user),
            key: allowance(key),
            tenant: allowance(tenant),
        })
    }

    /// After one more request of that identity. The narrowest policy is asked first, so that a user who is refused takes nothing from the others of the
    /// tenant.
    fn standing(&self, identity: &Identity) -> Option<Standing> {
        let mut standing = None;
        let tenant = identity.principal.tenant;
        if let Some(users) = &self.user {
            let user = (tenant, identity.user.clone());
            standing = Some(Standing::after(standing, Whose::User, users, &user));
        }
        if let (Some(keys), Some(key)) = (&self.key, identity.key_id()) {
            standing = Some(Standing::after(standing, Whose::Key, keys, &key));
        }
        if let Some(tenants) = &self.tenant {
            standing = Some(Standing::after(standing, Whose::Tenant, tenants, &tenant));
        }
        standing
    }
}

fn allowance<K: Hash + Eq + Clone>(per_minute: u32) -> Option<Allowance<K>> {
    NonZeroU32::new(per_minute).map(Allowance::per_minute)
}

impl Standing {
    /// One more policy, after those that have admitted the request; one that comes after a refusal counts nothing.
    fn after<K: Hash + Eq + Clone>(
        before: Option<Self>,
        whose: Whose,
        allowance: &Allowance<K>,
        of: &K,
    ) -> Self {
        let quota = allowance.quota();
        let policy = format!("\"{}\";q={quota};w={WINDOW}", whose.as_str());
        let Some(before) = before else {
            return Self {
                policies: policy,
                nearest: Nearest::after(whose, allowance.count(of), quota),
            };
        };
        let policies = format!("{}, {policy}", before.policies);
        let mut nearest = before.nearest;
        if !nearest.refused {
            let this = Nearest::after(whose, allowance.count(of), quota);
            if this.refused || this.remaining < nearest.remaining {
                nearest = this;
            }
        }
        Self { policies, nearest }
    }

    /// Why the request is refused; none where it is admitted.
    fn refusal(&self) -> Option<Problem> {
        let nearest = &self.nearest;
        if !nearest.refused {
            return None;
        }
        let (whose, quota) = (nearest.whose.as_str(), nearest.quota);
        let detail =
            format!("this {whose} has made the {quota} requests that it may make in a minute");
        let wait = nearest.reset.as_nanos().div_ceil(1_000_000).max(1) as u64;
        let problem = Problem::new(Code::TooManyRequests, detail);
        Some(
            problem
                .retry_after_ms(wait)
                .by_limit(setting(nearest.whose)),
        )
    }

    /// Says in the response where whoever asks stands. One that tells to wait for another reason names the policies alone: its `Retry-After` would end
    /// before the window that `RateLimit` tells of.
    fn tell(&self, response: &mut Response) {
        let nearest = &self.nearest;
        let headers = response.headers_mut();
        if let Ok(policies) = HeaderValue::from_str(&self.policies) {
            headers.insert(POLICY, policies);
        }
        let said = format!(
            "\"{}\";r={};t={}",
            nearest.whose.as_str(),
            nearest.remaining,
            nearest.reset.as_nanos().div_ceil(1_000_000_000)
        );
        let waits_for_another = headers.contains_key(RETRY_AFTER) && !nearest.refused;
        if let Ok(said) = HeaderValue::from_str(&said)
            && !waits_for_another
        {
            headers.insert(STANDING, said);
        }
    }
}

/// Counts a request of that identity; none where it is not to be counted, or nobody limits it.
pub fn count(app: &App, request: &Parts, identity: &Identity) -> Option<Standing> {
    let limits = app.requests.as_ref()?;
    is_counted(request)
        .then(|| limits.standing(identity))
        .flatten()
}

/// Refuses what is beyond a limit, and says of all else where whoever asks stands. What may be for a turn that is there goes on: its operation refuses it
/// where it is not.
pub async fn hold(standing: Option<Standing>, mut request: Request, next: Next) -> Response {
    let Some(standing) = standing else {
        return next.run(request).await;
    };
    let mut response = match standing.refusal() {
        Some(problem) if !may_be_known(&request) => problem.into_response(),
        refusal => {
            if let Some(problem) = refusal {
                request.extensions_mut().insert(OnlyKnown(problem));
            }
            next.run(request).await
        }
    };
    standing.tell(&mut response);
    response
}

/// What an operation is to answer unless what is asked for is there already: it may only follow a turn that was accepted before.
#[derive(Clone, Debug)]
pub struct OnlyKnown(pub Problem);

/// Whether a request counts. What resumes the stream of a turn that is there does not.
fn is_counted(request: &Parts) -> bool {
    let last_event = request.headers.get("last-event-id");
    let resumes = is_chat_stream(&request.method, &request.uri)
        && last_event.is_some_and(|id| !id.is_empty());
    let path = request.extensions.get::<MatchedPath>();
    !resumes && path.is_some_and(|path| operations::is_counted(&request.method, path.as_str()))
}

/// Whether a request may be for a turn that is there, which its operation alone can tell.
fn may_be_known(request: &Request) -> bool {
    let mut parameters = request.uri().query().unwrap_or_default().split('&');
    is_chat_stream(request.method(), request.uri())
        && parameters.any(|pair| pair.starts_with("request_id="))
}

/// The one operation that both starts turns and follows them.
fn is_chat_stream(method: &Method, uri: &Uri) -> bool {
    method == Method::GET && uri.path() == "/v1/chat/stream"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::auth::proof::Proof;
    use axum::response::IntoResponse;
    use tidemark_domain::identity::Principal;
    use uuid::Uuid;

    fn identity(tenant: u128, user: &str) -> Identity {
        let principal = Principal {
            tenant: TenantId(Uuid::from_u128(tenant)),
            ..Principal::anybody()
        };
        Identity {
            principal: Arc::new(principal),
            user: user.parse().unwrap(),
            proof: Proof::Nothing,
        }
    }

    fn limits(tenant: u32, user: u32) -> RequestLimits {
        RequestLimits::new(PerMinute {
            tenant,
            key: 0,
            user,
        })
        .unwrap()
    }

    /// What the headers say: the policies, the standing.
    fn told(standing: &Standing) -> (String, String) {
        let mut response = ().into_response();
        standing.tell(&mut response);
        let text = |name| response.headers()[&name].to_str().unwrap().to_owned();
        (text(POLICY), text(STANDING))
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        assert!(RequestLimits::new(PerMinute::default()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_policy_nearest_to_its_end_is_told_and_all_are_named() {
        let limits = limits(4, 3);
        let (policies, first) = told(&limits.standing(&identity(1, "ada")).unwrap());
        assert_eq!(policies, "\"user\";q=3;w=60, \"tenant\";q=4;w=60");
        assert_eq!(first, "\"user\";r=2;t=20");
        let (_, other) = told(&limits.standing(&identity(1, "eve")).unwrap());
        assert_eq!(other, "\"user\";r=2;t=20");
        let (_, third) = told(&limits.standing(&identity(1, "joe")).unwrap());
        assert_eq!(third, "\"tenant\";r=1;t=45");
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_who_is_refused_takes_nothing_from_the_tenant() {
        let limits = limits(4, 2);
        for _ in 0..20 {
            limits.standing(&identity(1, "eve"));
        }
        let refused = limits.standing(&identity(1, "eve")).unwrap();
        let problem = refused.refusal().unwrap();
        assert_eq!(problem.code(), Code::TooManyRequests);
        let answer = problem.into_response();
        assert_eq!(answer.headers()["retry-after"], "30");
        assert_eq!(answer.headers()["retry-after-ms"], "30000");
        assert_eq!(told(&refused).1, "\"user\";r=0;t=30");
        for _ in 0..2 {
            let ada = limits.standing(&identity(1, "ada")).unwrap();
            assert!(ada.refusal().is_none());
        }
        let tenant = limits.standing(&identity(1, "joe")).unwrap();
        assert!(tenant.refusal().is_some());
        assert!(told(&tenant).1.starts_with("\"tenant\";r=0;"));
        let other = limits.standing(&identity(2, "eve")).unwrap();
        assert!(other.refusal().is_none());
    }

    fn request(path: &str) -> Request {
        Request::builder()
            .uri(path)
            .body(axum::body::Body::empty())
            .unwrap()
    }

    #[test]
    fn only_a_stream_with_an_id_of_its_own_may_be_for_a_turn_that_is_there() {
        assert!(may_be_known(&request(
            "/v1/chat/stream?query=x&request_id=r"
        )));
        for other in [
            "/v1/chat/stream?query=request_id=r",
            "/v1/chat/stream",
            "/v1/sessions?request_id=r",
        ] {
            assert!(!may_be_known(&request(other)), "{other}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_to_wait_for_another_reason_is_not_told_of_a_longer_window() {
        let limits = limits(0, 6);
        let standing = limits.standing(&identity(1, "ada")).unwrap();
        let full = Problem::new(Code::QueueFull, "").retry_after_ms(1_000);
        let mut response = full.into_response();
        standing.tell(&mut response);
        assert!(response.headers().contains_key(POLICY));
        assert!(!response.headers().contains_key(STANDING));
    }
}
