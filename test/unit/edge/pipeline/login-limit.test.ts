/** Limit of attempts with invalid credentials per address. */
import { afterEach, expect, test, vi } from "vitest";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { LoginLimit } from "../../../../daemon/edge/pipeline/login-limit.ts";

afterEach(() => void vi.restoreAllMocks());

/** Response to the next failure of an address. */
function said(limit: LoginLimit, ip: string | null): string {
  try {
    limit.fail(ip);
    return "what was wrong";
  } catch (error) {
    return error instanceof ServiceError ? `${error.code} ${error.options.retryAfterSeconds}` : String(error);
  }
}
const times = (count: number, limit: LoginLimit, ip: string | null) =>
  Array.from({ length: count }, () => said(limit, ip));

test("an address has a number of attempts a minute, and regains them over time", () => {
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  const limit = new LoginLimit(6);
  expect(times(7, limit, "192.0.2.1")).toEqual([...Array(6).fill("what was wrong"), "rate_limited 10"]);
  expect(said(limit, "192.0.2.2")).toBe("what was wrong");
  clock.mockReturnValue(10_000);
  expect(times(2, limit, "192.0.2.1")).toEqual(["what was wrong", "rate_limited 10"]);
  clock.mockReturnValue(3_600_000);
  expect(times(7, limit, "192.0.2.1").filter((each) => each === "what was wrong")).toHaveLength(6);
});

test("an IPv6 network is one address in any notation, and so is IPv4 within IPv6", () => {
  vi.spyOn(performance, "now").mockReturnValue(0);
  const limit = new LoginLimit(1);
  expect(said(limit, "2001:db8::1")).toBe("what was wrong");
  expect(said(limit, "2001:db8:0:ffff::2")).toMatch(/^rate_limited/);
  expect(said(limit, "2001:db8:1::1")).toBe("what was wrong");
  expect(said(limit, "192.0.2.1")).toBe("what was wrong");
  expect(said(limit, "::ffff:192.0.2.1")).toMatch(/^rate_limited/);
});

test("many addresses take little memory: the oldest failure is evicted first", () => {
  vi.spyOn(performance, "now").mockReturnValue(0);
  const limit = new LoginLimit(1);
  expect(times(2, limit, "192.0.2.1")[1]).toMatch(/^rate_limited/);
  for (let n = 0; n < 20_000; n++) {
    limit.fail(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
    // An address that keeps failing is not evicted.
    if (n % 5000 === 0) expect(said(limit, "192.0.2.9")).toMatch(n === 0 ? /^what/ : /^rate_limited/);
  }
  expect(said(limit, "192.0.2.1")).toBe("what was wrong");
});

test("0 means no limit, and a client without an address has none", () => {
  expect(new Set(times(1000, new LoginLimit(0), "192.0.2.1"))).toEqual(new Set(["what was wrong"]));
  expect(new Set(times(1000, new LoginLimit(1), null))).toEqual(new Set(["what was wrong"]));
});
