//! Section 4.2.2, figures 4-11 to 4-13: latency over load.

use super::Topic;

pub(super) const TOPIC: Topic = Topic {
    experiments: &[],
    rule: |_, _| None,
    remark: |_| None,
    cells: |_| Vec::new(),
    figures: |_| Ok(Vec::new()),
};
