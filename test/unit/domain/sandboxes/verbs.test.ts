/**
 * Every verb of the supervisor in every state of a sandbox: it does exactly what the table defines, alone, and while another verb ends the
 * sandbox.
 */
import { describe, expect, test } from "vitest";
import { actsIn, mayTake, VERBS, type VerbName } from "../../../../daemon/domain/sandboxes/lifecycle/state.ts";
import { SANDBOX_STATES, type SandboxState } from "../../../../shared/api/sandboxes.ts";
import { newId } from "../../../../shared/ids.ts";
import { makeSandbox, PretendedGuest } from "./sandbox-fixture.ts";

const NAMES = Object.keys(VERBS) as VerbName[];
const CELLS = NAMES.flatMap((verb) => SANDBOX_STATES.map((state) => [verb, state] as const));
const HAVE_GUESTS: readonly SandboxState[] = VERBS.adopt.acts;

/** A sandbox in this state, with the guest that one in it has. Its states from then on are `seen`. */
async function sandboxIn(state: SandboxState, verb: VerbName) {
  const pretended = new PretendedGuest();
  const sandbox = await makeSandbox(state, {
    start: async (_row, onStarted) => {
      onStarted();
      return pretended.guest;
    },
    adopt: async (row) => ({ guest: pretended.guest, paused: row.state === "paused" || row.state === "pausing" }),
    restore: async () => pretended.guest,
  });
  pretended.savedTo = sandbox.paths.directory;
  // A hibernated one is on disk.
  if (state === "hibernated") await pretended.guest.save(new AbortController().signal);
  // Standby and resume need the guest; a state in the middle of either was left by another verb.
  const settled = state === "running" || state === "paused";
  if (settled && verb !== "adopt") await sandbox.supervisor.adopt();
  const seen: SandboxState[] = [];
  const over = new AbortController();
  const watched = sandbox.supervisor.published
    .until(
      (row) => {
        if (seen.at(-1) !== row.state) seen.push(row.state);
        return false;
      },
      Number.POSITIVE_INFINITY,
      over.signal,
    )
    .catch(() => {});
  return {
    sandbox,
    pretended,
    seen,
    async [Symbol.asyncDispose]() {
      over.abort();
      await watched;
      sandbox[Symbol.dispose]();
    },
  };
}

type Case = Awaited<ReturnType<typeof sandboxIn>>;

const DO: Record<VerbName, (made: Case) => Promise<unknown>> = {
  start: ({ sandbox }) => sandbox.supervisor.start(),
  adopt: ({ sandbox }) => sandbox.supervisor.adopt(),
  standby: ({ sandbox }) => sandbox.supervisor.standby(),
  hibernate: ({ sandbox }) => sandbox.supervisor.hibernate(),
  resume: ({ sandbox }) => sandbox.supervisor.resume(),
  snapshot: ({ sandbox }) =>
    sandbox.supervisor.snapshot({ snapshot_id: newId("snap"), mode: "full", into: sandbox.paths }),
  rollback: ({ sandbox }) =>
    sandbox.supervisor.rollback(
      { snapshot_id: newId("snap"), mode: "full", files: sandbox.paths },
      {},
      { admit: () => {}, onEnded: async () => {} },
    ),
  fail: ({ sandbox }) => sandbox.supervisor.lost("vmm_crash", "It is gone."),
  free: ({ sandbox }) => sandbox.supervisor.free(),
  destroy: ({ sandbox }) => sandbox.supervisor.destroy("user_requested"),
};

/** State in which each verb leaves a sandbox from the states in which it acts, if nothing prevents it. */
const LEAVES: Record<VerbName, (state: SandboxState) => SandboxState> = {
  start: () => "running",
  adopt: (state) => {
    if (state === "hibernated") return state;
    return state === "paused" || state === "pausing" ? "paused" : "running";
  },
  standby: () => "paused",
  hibernate: () => "hibernated",
  resume: () => "running",
  snapshot: (state) => state,
  rollback: () => "running",
  fail: () => "failed",
  free: (state) => state,
  destroy: () => "destroyed",
};

/** The observed changes that none of these verbs may make. */
function strayChanges(seen: readonly SandboxState[], verbs: readonly VerbName[]): string[] {
  return seen
    .slice(1)
    .map((to, index) => [seen[index] as SandboxState, to] as const)
    .filter(([from, to]) => !verbs.some((verb) => mayTake(verb, from, to)))
    .map(([from, to]) => `${from} → ${to}`);
}

describe.each(CELLS)("%s of a sandbox that is %s", (verb, state) => {
  test("gives the outcome in the table", async () => {
    await using made = await sandboxIn(state, verb);
    const { supervisor } = made.sandbox;
    const before = { ...supervisor.row };
    const outcome = await DO[verb](made).then(
      () => "done",
      (error: { code?: string }) => error.code,
    );
    const expected = actsIn(verb, state) ? LEAVES[verb](state) : state;
    expect(outcome).toBe(!actsIn(verb, state) && VERBS[verb].otherwise === "refused" ? "invalid_state" : "done");
    expect(supervisor.row.state).toBe(expected);
    if (!actsIn(verb, state)) expect(supervisor.row).toEqual(before);
    expect(strayChanges(made.seen, [verb])).toEqual([]);
    // The committed state equals the published one.
    if (expected !== "destroyed") expect(made.sandbox.committed?.state).toBe(expected);
  });

  test.each(["destroy", "fail"] as const)(
    "concurrent with %s ends in that verb's state, and nothing remains",
    async (ending) => {
      await using made = await sandboxIn(state, verb);
      const { supervisor } = made.sandbox;
      // Both orders of the two are tried.
      for (const [first, second] of [
        [verb, ending],
        [ending, verb],
      ] as const) {
        await Promise.allSettled([DO[first](made), DO[second](made)]);
      }
      expect(strayChanges(made.seen, [verb, ending])).toEqual([]);
      const ended: readonly SandboxState[] = ["failed", "destroyed"];
      if (ending === "destroy") expect(supervisor.row.state).toBe("destroyed");
      // A sandbox that is being destroyed can no longer fail.
      else
        expect(
          supervisor.row.state === "destroying" ? state === "destroying" : ended.includes(supervisor.row.state),
        ).toBe(true);
      if (ended.includes(supervisor.row.state) && HAVE_GUESTS.includes(state)) {
        expect([supervisor.guest, made.sandbox.heldCids]).toEqual([null, []]);
      }
    },
  );
});
