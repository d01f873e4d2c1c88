/**
 * Throttling of password attempts: each failure delays the next attempt, failures decay with time, and a delay of one user does not delay
 * another.
 */
import { expect, test } from "vitest";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { LoginThrottle } from "../../../../../daemon/domain/users/sign-in/login-throttle.ts";
import { AT_ONCE, Passwords, stranger } from "../../../../../daemon/domain/users/sign-in/passwords.ts";
import { MovedClock } from "../../../../harness/hosts/moved-clock.ts";

const of = (name: string, free = 3) => [{ name, free }];

/** Seconds until the next try; 0: it was taken. */
function wait(attempts: LoginThrottle, name: string): number {
  try {
    attempts.begin(of(name));
    return 0;
  } catch (error) {
    return (error as ServiceError).options.retryAfterSeconds ?? -1;
  }
}

test("delays grow to a minute, regardless of attempts of others", () => {
  using clock = new MovedClock();
  const attempts = new LoginThrottle();
  const delays: number[] = [];
  // Three are free; the fourth makes the fifth wait.
  for (let each = 0; each < 3; each++) expect(wait(attempts, "a")).toBe(0);
  for (let each = 0; each < 8; each++) {
    expect(wait(attempts, "a")).toBe(0);
    const seconds = wait(attempts, "a");
    delays.push(seconds);
    clock.pass(seconds * 1000);
  }
  expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  expect(wait(attempts, "b")).toBe(0);
});

test("concurrent attempts all count before any outcome is available", () => {
  using _ = new MovedClock();
  const attempts = new LoginThrottle();
  const taken = Array.from({ length: 20 }, () => wait(attempts, "a")).filter((seconds) => seconds === 0);
  expect(taken).toHaveLength(4);
});

test("a correct password, and an hour, clear the failures", () => {
  using clock = new MovedClock();
  const attempts = new LoginThrottle();
  for (let each = 0; each < 6; each++) wait(attempts, "a");
  expect(wait(attempts, "a")).toBeGreaterThan(0);
  clock.pass(3_700_000);
  expect(wait(attempts, "a")).toBe(0);
  for (let each = 0; each < 6; each++) wait(attempts, "b");
  attempts.succeeded(of("b"));
  expect(wait(attempts, "b")).toBe(0);
});

test("a recognized client has its own line that strangers cannot fill; only attempts with a slot count", async () => {
  const passwords = new Passwords();
  let attempts = 0;
  const tries = Array.from({ length: 100 }, (_, network) =>
    passwords.isRight("a password", null, stranger(`${network}`), () => attempts++).catch((error: unknown) => error),
  );
  const known = passwords.isRight("a password", null, { line: "known", name: "browser" }, () => {});
  expect(await Promise.race([known, Promise.all(tries).then(() => "strangers first")])).toBe(false);
  const outcomes = await Promise.all(tries);
  expect(outcomes.filter((each) => each instanceof ServiceError)).toHaveLength(100 - attempts);
  expect(attempts).toBe(64 + AT_ONCE);
});

test("invented names evict no running delay", () => {
  using _ = new MovedClock();
  const attempts = new LoginThrottle();
  for (let each = 0; each < 6; each++) wait(attempts, "ada");
  for (let each = 0; each < 25_000; each++) wait(attempts, `name ${each}`);
  expect(wait(attempts, "ada")).toBeGreaterThan(0);
});

test("one network has few slots for password hashing, and takes none of the others'", async () => {
  const passwords = new Passwords();
  const of = (network: string, count: number) =>
    Array.from({ length: count }, () =>
      passwords.isRight("a password", null, stranger(network), () => {}).catch((error: unknown) => error),
    );
  const flood = Promise.all(of("one", 20));
  const others = Promise.all(of("two", 2));
  expect(await others).toEqual([false, false]);
  const outcomes = await flood;
  expect(outcomes.filter((each) => each === false)).toHaveLength(3);
  expect(outcomes.filter((each) => each instanceof ServiceError && each.code === "rate_limited")).toHaveLength(17);
  const one = stranger("one");
  const hash = await passwords.hash("a password", one);
  expect(await passwords.isRight("a password", hash, one, () => {})).toBe(true);
});
