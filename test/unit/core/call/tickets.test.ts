import { afterEach, expect, test, vi } from "vitest";
import type { Caller } from "../../../../daemon/core/call/operation.ts";
import { MAX_OF_A_KEY, markOf, Tickets, ticketMark } from "../../../../daemon/core/call/tickets.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { makeAttach } from "../../../../daemon/domain/terminals/attach.ts";
import type { SandboxAccess, TerminalDeps, TerminalGoal } from "../../../../daemon/domain/terminals/deps.ts";
import { Sessions } from "../../../../daemon/domain/terminals/sessions.ts";
import { Writers } from "../../../../daemon/domain/terminals/writers.ts";

const GOAL = { sandbox_id: "sbx_1", terminal_id: "ter_1" };
const callerOf = (key_id: string) => ({ key_id }) as Caller;

afterEach(() => {
  vi.useRealTimers();
});

test("a key's tickets evict its own oldest, and no other key's", () => {
  const tickets = new Tickets<TerminalGoal>();
  const others = tickets.make("ttk_", callerOf("kid_other"), GOAL).token;
  const [oldest = "", second = ""] = Array.from(
    { length: MAX_OF_A_KEY + 1 },
    () => tickets.make("ttk_", callerOf("kid_1"), GOAL).token,
  );
  expect(tickets.find(oldest)).toBeNull();
  expect(tickets.find(second)).toMatchObject({ goal: GOAL });
  expect(tickets.find(others)).not.toBeNull();
});

test("a ticket expires and makes room", () => {
  vi.useFakeTimers();
  const tickets = new Tickets<TerminalGoal>();
  const first = tickets.make("ttk_", callerOf("kid_1"), GOAL).token;
  vi.advanceTimersByTime(10 * 60_000);
  expect(tickets.find(first)).toBeNull();
  const made = Array.from({ length: MAX_OF_A_KEY }, () => tickets.make("ttk_", callerOf("kid_1"), GOAL).token);
  expect(made.every((token) => tickets.find(token) !== null)).toBe(true);
});

test("a ticket opens its terminal in its own sandbox, and in no later one of the same name", () => {
  const tickets = new Tickets<TerminalGoal>();
  const { token } = tickets.make("ttk_", callerOf("kid_1"), GOAL);
  let held: string | null = "sbx_1";
  const find: SandboxAccess["find"] = () => {
    if (held === null) throw new ServiceError("sandbox_not_found");
    return { room: {}, row: { sandbox_id: held } } as ReturnType<SandboxAccess["find"]>;
  };
  const deps = { sandboxes: { find }, isCurrentKey: (keyId: string) => keyId === "kid_1" } as unknown as TerminalDeps;
  const { admit } = makeAttach(deps, tickets, new Sessions(deps, new Writers()));
  const params = { room_id: "r", sandbox: "worker-1", terminal_id: "ter_1" };
  const refusal = expect.objectContaining({ code: "invalid_api_key" });
  expect(admit?.(token, params).key_id).toBe("kid_1");
  expect(() => admit?.(token, { ...params, terminal_id: "ter_2" })).toThrow(refusal);
  held = "sbx_2";
  expect(() => admit?.(token, params)).toThrow(refusal);
  held = null;
  expect(() => admit?.(token, params)).toThrow(refusal);
});

test("a ticket of one of several hosts leads to it, and another host's leads nowhere", () => {
  const mark = ticketMark("host-1");
  const tickets = new Tickets<TerminalGoal>(mark);
  const { token } = tickets.make("ttk_", callerOf("kid_1"), GOAL);
  expect(markOf(token)).toBe(mark);
  expect(token).toMatch(/^[\w.-]+$/);
  expect(tickets.find(token)?.goal).toEqual(GOAL);
  expect(ticketMark("host-2")).not.toBe(mark);
  expect(markOf(new Tickets<TerminalGoal>().make("ttk_", callerOf("kid_1"), GOAL).token)).toBeNull();
  for (const none of ["", "ttk_", `${mark}.`, `ttk_${mark}`]) expect(markOf(none)).toBeNull();
});
