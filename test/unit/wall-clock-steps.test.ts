/** Lifetimes within a process, which steps of the wall clock neither shorten nor extend. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "../../daemon/core/call/operation.ts";
import { Tickets } from "../../daemon/core/call/tickets.ts";
import { Idleness, type IdlenessDeps } from "../../daemon/domain/sandboxes/lifecycle/idleness.ts";
import { Challenges } from "../../daemon/domain/users/sign-in/challenges.ts";
import { LoginThrottle } from "../../daemon/domain/users/sign-in/login-throttle.ts";
import { Sessions } from "../../daemon/edge/mcp/sessions.ts";
import type { KeyId } from "../../shared/ids.ts";
import { MovedClock } from "../harness/hosts/moved-clock.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

let clock: MovedClock;
beforeEach(() => {
  clock = new MovedClock();
});
afterEach(() => clock[Symbol.dispose]());

interface Lifetime {
  ms: number;
  /** Starts it, and returns a function that tells whether it is still valid. */
  begin(): () => boolean;
}

const LIFETIMES: Record<string, Lifetime> = {
  "a ticket": {
    ms: 10 * MINUTE_MS,
    begin() {
      const tickets = new Tickets();
      const { token } = tickets.make("ttk_", { key_id: "kid_1" } as Caller, { sandbox_id: "sbx_1" });
      return () => tickets.find(token) !== null;
    },
  },
  "a challenge": {
    ms: 5 * MINUTE_MS,
    begin() {
      const challenges = new Challenges();
      const given = { purpose: "sign in", to: "browser" };
      const challenge = challenges.make(given);
      return () => challenges.isOpen(challenge, given);
    },
  },
  "the delay after a failed try of a password": {
    ms: 1000,
    begin() {
      const attempts = new LoginThrottle();
      const counts = [{ name: "ada", free: 0 }];
      attempts.begin(counts);
      return () => {
        try {
          attempts.begin(counts);
          return false;
        } catch {
          return true;
        }
      };
    },
  },
  "a client's session of MCP": {
    ms: HOUR_MS,
    begin() {
      const sessions = new Sessions();
      const session = sessions.of("kid_1" as KeyId, "client");
      // Looking at it is using it.
      return () => {
        const { usedAt } = session;
        const isSame = sessions.of("kid_1" as KeyId, "client") === session;
        session.usedAt = usedAt;
        return isSame;
      };
    },
  },
  "the time until a sandbox with traffic is idle": {
    ms: 10 * MINUTE_MS,
    begin() {
      let isIdle = false;
      let traffic_at: number | null = null;
      const idleness = new Idleness({
        supervisorOf: () => ({ row: { state: "running", on_idle: "destroy", idle_timeout_seconds: 600 } }),
        activityOf: () => ({ traffic_at, cpu_seconds: null }),
        end: async () => {
          isIdle = true;
        },
      } as unknown as IdlenessDeps);
      idleness.restart("sbx_1");
      clock.pass(5 * MINUTE_MS);
      traffic_at = performance.now();
      return () => !isIdle;
    },
  },
};

describe.each([1, -1])("after a step of the wall clock by %i h", (hours) => {
  test.each(Object.entries(LIFETIMES))("%s ends on time", (_, { ms, begin }) => {
    const lasts = begin();
    clock.step(hours * HOUR_MS);
    clock.pass(ms - 1);
    expect(lasts()).toBe(true);
    clock.pass(1);
    expect(lasts()).toBe(false);
  });
});
