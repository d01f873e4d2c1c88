/** Faults that are put into the daemon, to show that simulations find them: each removes one of the protections of several hosts. */

/** A text of a module and its replacement. */
export interface Replacement {
  /** End of the path of the module. */
  module: string;
  from: string;
  to: string;
}

export const MUTATIONS = {
  "rooms of newer epochs on other hosts are answered for": [
    {
      module: "/domain/rooms/ownership.ts",
      from: "const standing = standingOf(owner, row.epoch, hostId);",
      to: 'const standing: string = "here";',
    },
  ],
  "a room that comes has no epoch": [
    {
      module: "/domain/rooms/move/rows.ts",
      from: "branching: null, epoch: epoch + 1 }",
      to: "branching: null, epoch: 1 }",
    },
  ],
  // Each of the two hides the absence of the other.
  "a directory that forgot a move is not told the epoch": [
    {
      module: "/cluster/self-sync.ts",
      from: "owner !== null && owner.epoch < epoch",
      to: "owner === null && epoch < 0",
    },
    {
      module: "/cluster/one-way.ts",
      from: "Number(here.epoch) > Number(there.epoch)",
      to: "Number(here.epoch) < 0",
    },
  ],
  "a call that another host has carried out is carried out again": [
    {
      module: "/cluster/done-calls.ts",
      from: "const earlier = rows as unknown as (NamedCall & { host_id: string })[];",
      to: "const earlier = rows.slice(0, 0) as unknown as (NamedCall & { host_id: string })[];",
    },
  ],
  "no tombstone is looked at": [
    {
      module: "/cluster/one-way.ts",
      from: "const removed = removedAmong(queries, rows);",
      to: "const removed = new Set();",
    },
  ],
  "a daemon that is out is a member again": [
    {
      module: "/cluster/leases.ts",
      from: "holder.isOut ? [0, []] : [number, mine]",
      to: "[number, mine]",
    },
    {
      module: "/cluster/membership-lock.ts",
      from: "if (isOut) return false;",
      to: "",
    },
  ],
} as const satisfies Record<string, readonly Replacement[]>;

export type MutationName = keyof typeof MUTATIONS;

export const isMutation = (name: string): name is MutationName => Object.hasOwn(MUTATIONS, name);
