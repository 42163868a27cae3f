//! Appendix A and the calculations of chapters 1 to 4: figure 4-2 and the claims that arithmetic decides.

use super::Topic;

pub(super) const TOPIC: Topic = Topic {
    experiments: &[],
    rule: |_, _| None,
    remark: |_| None,
    cells: |_| Vec::new(),
    figures: |_| Ok(Vec::new()),
};
