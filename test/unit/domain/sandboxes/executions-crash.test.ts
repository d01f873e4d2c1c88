/** One execution across kills of the daemon and retried calls, in each order of concurrent events: metered once, its end recorded once. */
import { describe, expect, test } from "vitest";
import type { Stream } from "../../../../shared/agent-protocol/link.ts";
import type { ExecState } from "../../../../shared/agent-protocol/messages.ts";
import { until } from "../../../harness/guests.ts";
import { sampled } from "../../../harness/sampled.ts";
import { type Asked, sayFollowing, stateOf } from "../executions/agent-fixture.ts";
import { ExecutionsFixture } from "./executions-fixture.ts";

const INPUT = { exec_id: "x", argv: ["true"] };
const ENDED = { state: "exited", exit_code: 0, finished_at_ms: 5 } as const;

/** An agent that runs a command once, however often it is requested, and outlives daemons. */
class Guest {
  execution: ExecState | null = null;
  #followers: { stream: Stream; existing?: boolean }[] = [];

  answer(stream: Stream, { method, exec_id, follow }: Asked): void {
    const existing = this.execution !== null;
    const execution = this.execution ?? stateOf(exec_id);
    this.execution = execution;
    const answer = method === "exec_start" ? { stream, existing } : { stream };
    if (method === "exec_start" && !follow) stream.finish({ execution, existing });
    else {
      sayFollowing(stream, exec_id, execution);
      this.#followers.push(answer);
      if (execution.state === "exited") this.end();
    }
  }

  end(): ExecState {
    const execution = { ...(this.execution ?? stateOf("x")), ...ENDED };
    this.execution = execution;
    for (const { stream, ...rest } of this.#followers.splice(0)) {
      if (!stream.ended) stream.finish({ execution, ...rest });
    }
    return execution;
  }
}

const CALLS = { exec: "sandbox_exec", start: "execution_start" } as const;
type Call = keyof typeof CALLS;

interface Course {
  first: Call;
  /** When the first daemon is killed; none: it is not. */
  killed: "none" | "while it runs" | "before its record" | "after its record";
  /** Whether the command ends before the second daemon queries the guest. */
  ends: "early" | "late";
  again: "no" | Call;
  /** Whether the repeated call arrives before or after that daemon has read the guest's executions. */
  comes: "before" | "after";
}

const COURSES: Course[] = (["exec", "start"] as const).flatMap((first) =>
  (["none", "while it runs", "before its record", "after its record"] as const).flatMap((killed) =>
    (["early", "late"] as const).flatMap((ends) =>
      (["no", "exec", "start"] as const).flatMap((again) =>
        (["before", "after"] as const).map((comes) => ({ first, killed, ends, again, comes })),
      ),
    ),
  ),
);

/**
 * A start is answered while the command runs, an exec at its end: if a daemon is killed around the record of an exec that waits, the
 * command has ended.
 */
function canBe({ first, killed, ends, again, comes }: Course): boolean {
  if (again === "no" && comes === "after") return false;
  if (killed === "none" && comes === "after") return false;
  if (first === "start") return killed !== "while it runs";
  return killed === "none" || (killed === "while it runs" ? true : ends === "early");
}

async function play({ first, killed, ends, again, comes }: Course) {
  using fixture = new ExecutionsFixture();
  const guest = new Guest();
  fixture.guest.answer = (stream, request) => guest.answer(stream, request);
  const found = () => fixture.agent.asked.filter(({ method }) => method === "exec_ended").length;
  const look = async () => {
    const before = found();
    fixture.guest.listed = guest.execution ? [guest.execution] : [];
    fixture.ends.watch("sbx_1");
    await until("the guest has been polled", async () => found() > before);
  };
  await look();

  const isTold = killed === "before its record" || killed === "after its record";
  const calls = [fixture.recorded(CALLS[first], INPUT, isTold ? killed : undefined).catch(() => false)];
  await until("the execution is running", async () => guest.execution !== null);
  if (first === "exec" && isTold) guest.end();
  if (first === "start" || isTold) await calls[0];
  if (killed === "while it runs") fixture.restart();
  if (ends === "early" && killed !== "none") guest.end();

  const repeat = () => again !== "no" && calls.push(fixture.recorded(CALLS[again], INPUT).catch(() => false));
  if (killed === "none") repeat();
  else if (comes === "before") {
    const inspection = look();
    repeat();
    await inspection;
  } else {
    await look();
    repeat();
  }
  if (again !== "no") {
    const startCount = () => fixture.agent.asked.filter(({ method }) => method === "exec_start").length;
    await until("exec_start is requested again", async () => startCount() >= 2);
  }
  const over = guest.end();
  await Promise.all(calls);
  fixture.tell([over]);
  await until("the execution's end is acknowledged to the guest", async () => fixture.settled.includes("x"));
  const finished = fixture.records.filter(({ event }) => event === "exec.finished");
  // Each call that waited has its own record; in addition the end is recorded once at most, and not if every end is already recorded.
  const byDaemon = finished.filter(
    ({ request_id, source, duration_ms }) => duration_ms !== null || source !== "rest" || request_id,
  );
  return { metered: fixture.metered, finished: finished.length, byDaemon: byDaemon.length };
}

describe("an execution is metered once and its end is in the audit log", () => {
  test.each(sampled("courses of an execution", COURSES.filter(canBe)))(
    "$first, killed: $killed, ends $ends, again: $again $comes",
    async (course) => {
      const { metered, finished, byDaemon } = await play(course);
      expect(metered).toBe(1);
      expect(finished).toBeGreaterThanOrEqual(1);
      expect(byDaemon).toBeLessThanOrEqual(1);
      if (course.first === "exec" && course.again === "no") expect(finished).toBe(1);
      // A call waiting for a command without a known starter records the end itself.
      const isWaitedFor = course.killed !== "none" && course.again === "exec" && course.comes === "before";
      if (course.first === "start" && !isWaitedFor) expect(byDaemon).toBe(1);
    },
  );
});
