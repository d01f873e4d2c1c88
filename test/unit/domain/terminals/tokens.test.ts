import { afterEach, expect, test, vi } from "vitest";
import type { Caller } from "../../../../daemon/core/operation.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { makeAttach } from "../../../../daemon/domain/terminals/attach.ts";
import type { SandboxAccess, TerminalDeps } from "../../../../daemon/domain/terminals/deps.ts";
import { Sessions } from "../../../../daemon/domain/terminals/sessions.ts";
import { MOST_OF_A_KEY, Tokens } from "../../../../daemon/domain/terminals/tokens.ts";
import { Typists } from "../../../../daemon/domain/terminals/typists.ts";

const callerOf = (key_id: string) => ({ key_id }) as Caller;

afterEach(() => {
  vi.useRealTimers();
});

test("a key's tokens push out its own oldest, and no other key's", () => {
  const tokens = new Tokens();
  const others = tokens.make(callerOf("kid_other"), "sbx_1", "ter_1").token;
  const [oldest = "", second = ""] = Array.from(
    { length: MOST_OF_A_KEY + 1 },
    () => tokens.make(callerOf("kid_1"), "sbx_1", "ter_1").token,
  );
  expect(tokens.find(oldest)).toBeNull();
  expect(tokens.find(second)).toMatchObject({ sandbox_id: "sbx_1", terminal_id: "ter_1" });
  expect(tokens.find(others)).not.toBeNull();
});

test("a token ends with its time, and makes room", () => {
  vi.useFakeTimers();
  const tokens = new Tokens();
  const first = tokens.make(callerOf("kid_1"), "sbx_1", "ter_1").token;
  vi.advanceTimersByTime(10 * 60_000);
  expect(tokens.find(first)).toBeNull();
  const made = Array.from({ length: MOST_OF_A_KEY }, () => tokens.make(callerOf("kid_1"), "sbx_1", "ter_1").token);
  expect(made.every((token) => tokens.find(token) !== null)).toBe(true);
});

test("a token opens its terminal in its own sandbox, and in none that has the name after it", () => {
  const tokens = new Tokens();
  const { token } = tokens.make(callerOf("kid_1"), "sbx_1", "ter_1");
  let held: string | null = "sbx_1";
  const find: SandboxAccess["find"] = () => {
    if (held === null) throw new ServiceError("sandbox_not_found");
    return { room: {}, row: { sandbox_id: held } } as ReturnType<SandboxAccess["find"]>;
  };
  const deps = { sandboxes: { find }, isCurrentKey: (keyId: string) => keyId === "kid_1" } as unknown as TerminalDeps;
  const { admit } = makeAttach(deps, tokens, new Sessions(deps, new Typists()));
  const params = { room_id: "r", sandbox: "worker-1", terminal_id: "ter_1" };
  const refusal = expect.objectContaining({ code: "invalid_api_key" });
  expect(admit?.(token, params).key_id).toBe("kid_1");
  expect(() => admit?.(token, { ...params, terminal_id: "ter_2" })).toThrow(refusal);
  held = "sbx_2";
  expect(() => admit?.(token, params)).toThrow(refusal);
  held = null;
  expect(() => admit?.(token, params)).toThrow(refusal);
});
