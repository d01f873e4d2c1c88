/** The checks of histories of lists and keys, on histories that are good and on bad ones. */
import { describe, expect, test } from "vitest";
import { type Append, type Read, type Use, wrongLists, wrongUses } from "../../harness/hosts/append-history.ts";

const append = (value: string, began: number, ended: number, fate: Append["fate"] = "done"): Append => ({
  ...{ list: "l", value, host: "host-1", began, ended, fate },
});
const read = (values: string, began: number, ended: number): Read => ({
  ...{ list: "l", values: [...values], host: "host-2", began, ended },
});
const wrong = (appends: Append[], reads: Read[], last: string) =>
  wrongLists(appends, reads, new Map([["l", [...last]]]));

describe("a history of a list", () => {
  const appends = [append("a", 0, 1), append("b", 2, 5), append("c", 3, 4), append("d", 6, Infinity, "unknown")];

  test("is valid in every order and with every read that real time allows", () => {
    expect(wrong(appends, [read("", 0, 1), read("a", 2, 3), read("abc", 5, 6), read("abcd", 8, 9)], "abcd")).toEqual(
      [],
    );
    expect(wrong(appends, [read("ac", 4, 5), read("acb", 6, 7)], "acb")).toEqual([]);
    expect(wrong([...appends, append("e", 0, 1, "refused")], [], "abc")).toEqual([]);
  });

  test.each<[string, Append[], Read[], string, RegExp]>([
    ["a lost append", appends, [], "ac", /b was acknowledged by host-1, and is lost/],
    ["an append that is there twice", appends, [], "abcb", /b is there twice/],
    ["a value from nowhere", appends, [], "abcx", /x is there without an append/],
    [
      "a refused append that took effect",
      [...appends, append("e", 0, 1, "refused")],
      [],
      "aebc",
      /e is there, and was refused/,
    ],
    ["an order against real time", appends, [], "bac", /b stands before a/],
    ["a read of another order", appends, [read("ab", 5, 6)], "acb", /has b at 1, the final order c/],
    [
      "a read of a value that is lost later",
      appends,
      [read("abcd", 7, 8)],
      "abc",
      /has d at 3, the final order nothing/,
    ],
    ["a stale read", appends, [read("a", 6, 7)], "abc", /lacks b, which was acknowledged before/],
    ["a read of a later append", appends, [read("abc", 0, 1)], "abc", /has b, which was appended later/],
    [
      "a read that goes back",
      appends,
      [read("abcd", 7, 8), read("abc", 9, 10)],
      "abcd",
      /has 3 values, an earlier one at host-2 4/,
    ],
  ])("with %s is invalid", (_, given, reads, last, is) => {
    expect(wrong(given, reads, last)).toEqual(expect.arrayContaining([expect.stringMatching(is)]));
  });

  test("with two lists is checked per list", () => {
    const other = { ...append("b", 0, 1), list: "m" };
    expect(
      wrongLists(
        [append("a", 0, 1), other],
        [],
        new Map([
          ["l", ["a"]],
          ["m", ["b"]],
        ]),
      ),
    ).toEqual([]);
    expect(wrongLists([append("a", 0, 1), other], [], new Map([["l", ["a", "b"]]]))).toHaveLength(2);
  });
});

describe("a revoked key", () => {
  const use = (began: number, isTaken: boolean, host = "host-1"): Use => ({
    key: "k",
    host,
    began,
    ended: began + 1,
    isTaken,
  });
  const check = (uses: Use[], cuts: { host?: string; from: number; until: number }[] = []) =>
    wrongUses(uses, [{ key: "k", at: 1_000 }], cuts, 500);

  test("is accepted for a second at most", () => {
    expect(check([use(500, true), use(1_900, true), use(2_100, false)])).toEqual({ checked: 1, wrong: [] });
    expect(check([use(2_100, true)]).wrong).toEqual([expect.stringMatching(/^k .*host-1.* 1100 ms/)]);
  });

  test("is accepted for longer by a host that cannot follow, until it does", () => {
    const cuts = [{ host: "host-2", from: 900, until: 5_000 }];
    expect(check([use(6_000, true, "host-2")], cuts).wrong).toEqual([]);
    expect(check([use(6_600, true, "host-2")], cuts).wrong).toHaveLength(1);
    expect(check([use(6_000, true)], cuts).wrong).toHaveLength(1);
    expect(check([use(6_000, true)], [{ from: 900, until: 5_000 }]).wrong).toEqual([]);
    expect(check([use(6_600, true)], [{ from: 3_000, until: 6_500 }]).wrong).toHaveLength(1);
  });

  test("is never accepted by a host that has refused it", () => {
    expect(check([use(1_100, false), use(1_200, true)]).wrong).toEqual([expect.stringMatching(/^k .*host-1.* 200 ms/)]);
    expect(check([use(1_100, false), use(1_200, true, "host-2")]).wrong).toEqual([]);
    expect(check([use(900, false), use(1_200, true)]).wrong).toEqual([]);
  });
});
