import { expect, test } from "vitest";
import { takeVariable } from "../../../daemon/edge/ssh/environment.ts";
import { Startups } from "../../../daemon/edge/ssh/startups.ts";

function enterAll(startups: Startups, names: readonly string[], dropped: string[]) {
  return names.map((name) => startups.enter(name.split(":")[0] ?? "", () => dropped.push(name)));
}

test("above the limit of an address its oldest connection without a key exchange ends", () => {
  const dropped: string[] = [];
  const startups = new Startups({ all: 100, per_address: 2 });
  const [first] = enterAll(startups, ["a:1", "a:2", "b:1"], dropped);
  first?.greet();
  enterAll(startups, ["a:3"], dropped);
  expect(dropped).toEqual(["a:2"]);
  enterAll(startups, ["a:4", "a:5"], dropped);
  expect(dropped).toEqual(["a:2", "a:3", "a:4"]);
  expect(startups.size).toBe(3);
});

test("if all have exchanged keys the oldest ends, never the new one", () => {
  const dropped: string[] = [];
  const startups = new Startups({ all: 2, per_address: 2 });
  for (const each of enterAll(startups, ["a:1", "a:2"], dropped)) each.greet();
  enterAll(startups, ["a:3", "b:1"], dropped);
  expect(dropped).toEqual(["a:1", "a:3"]);
});

test("above the total limit a connection of the largest address ends, and none of the others", () => {
  const dropped: string[] = [];
  const startups = new Startups({ all: 4, per_address: 4 });
  enterAll(startups, ["b:1", "a:1", "a:2", "a:3", "c:1"], dropped);
  expect(dropped).toEqual(["a:1"]);
});

test("a closed connection makes room", () => {
  const dropped: string[] = [];
  const startups = new Startups({ all: 1, per_address: 1 });
  for (const each of enterAll(startups, ["a:1"], dropped)) each.leave();
  enterAll(startups, ["a:2"], dropped);
  expect(dropped).toEqual([]);
});

test("a client's variables are accepted by name, few and short", () => {
  const env: Record<string, string> = {};
  const taken = ["LANG", "LC_ALL", "TZ", "GIT_PROTOCOL", "NO_COLOR"].map((name) => takeVariable(env, name, "x"));
  expect(taken).toEqual([true, true, true, true, true]);
  for (const name of ["LD_PRELOAD", "PATH", "ROOMD_AGENT_ID", "LC_all", "HOME", "BASH_ENV", "__proto__", "XLANG"]) {
    expect(takeVariable(env, name, "x"), name).toBe(false);
  }
  expect(takeVariable(env, "LANG", "a\0b")).toBe(false);
  expect(takeVariable(env, "LANG", "x".repeat(5000))).toBe(false);
  for (let index = 0; index < 100; index++) takeVariable(env, `LC_${"A".repeat(index + 1)}`, "x");
  expect(Object.keys(env)).toHaveLength(64);
  expect(takeVariable(env, "LANG", "again")).toBe(true);
});
