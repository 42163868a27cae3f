//! The papers that can be reproduced.

mod faulkner;
mod peng;

use crate::reproduce::Paper;

/// Every paper, by its short name.
pub const ALL: [&dyn Paper; 2] = [&faulkner::Faulkner, &peng::Peng];

/// The paper called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Paper> {
    ALL.into_iter().find(|paper| paper.name() == name)
}
