//! Strongly connected components: the largest sets of nodes that all reach each other.
//!
//! Tarjan's algorithm ("Depth-first search and linear graph algorithms", SIAM Journal on Computing
//! 1(2), 1972), in time linear in nodes and edges. It uses an explicit stack instead of recursion,
//! so long loops do not overflow the thread's stack. The *low* of a node is the earliest node on
//! the stack that it is known to reach. A node that is its own low is the root of a component,
//! which holds everything above it on the stack.

/// The component of each node, and the number of components. `next` holds the edges of each node.
pub(super) fn components(next: &[Vec<usize>]) -> (Vec<usize>, usize) {
    const NONE: usize = usize::MAX;
    let mut order = vec![NONE; next.len()];
    let mut low = vec![NONE; next.len()];
    let mut component = vec![NONE; next.len()];
    let (mut visited, mut count) = (0, 0);
    let mut stack = Vec::new();
    // The nodes being visited, each with its next edge.
    let mut visits = Vec::new();
    for root in 0..next.len() {
        if order[root] == NONE {
            visits.push((root, 0));
        }
        while let Some((node, edge)) = visits.pop() {
            if edge == 0 {
                (order[node], low[node]) = (visited, visited);
                visited += 1;
                stack.push(node);
            } else {
                // The edge before has returned: this node reaches everything its target reaches.
                let done = next[node][edge - 1];
                if component[done] == NONE {
                    low[node] = low[node].min(low[done]);
                }
            }
            if let Some(&to) = next[node].get(edge) {
                visits.push((node, edge + 1));
                if order[to] == NONE {
                    visits.push((to, 0));
                }
                continue;
            }
            if low[node] == order[node] {
                while let Some(top) = stack.pop() {
                    component[top] = count;
                    if top == node {
                        break;
                    }
                }
                count += 1;
            }
        }
    }
    (component, count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::components;

    /// The nodes that each node reaches, found by trying every path.
    fn reachable(next: &[Vec<usize>]) -> Vec<Vec<bool>> {
        let reach = |from: usize| {
            let mut seen = vec![false; next.len()];
            let mut open = vec![from];
            while let Some(node) = open.pop() {
                if !std::mem::replace(&mut seen[node], true) {
                    open.extend(&next[node]);
                }
            }
            seen
        };
        (0..next.len()).map(reach).collect()
    }

    proptest! {
        #[test]
        fn two_nodes_share_a_component_if_they_reach_each_other(
            edges in proptest::collection::vec((0..12_usize, 0..12_usize), 0..40),
        ) {
            let mut next = vec![Vec::new(); 12];
            for (from, to) in edges {
                next[from].push(to);
            }
            let (component, count) = components(&next);
            let reach = reachable(&next);
            for a in 0..12 {
                prop_assert!(component[a] < count);
                for b in 0..12 {
                    prop_assert_eq!(component[a] == component[b], reach[a][b] && reach[b][a]);
                }
            }
        }
    }

    #[test]
    fn a_long_ring_needs_no_deep_stack() {
        let ring: Vec<Vec<usize>> = (0..200_000).map(|node| vec![(node + 1) % 200_000]).collect();
        assert_eq!(components(&ring).1, 1);
    }
}
