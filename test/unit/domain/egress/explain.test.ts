/**
 * Explanations of egress decisions: verdict, reason and sentence by a table, equal to the guard's decision, and without data of the host's
 * DNS.
 */
import { expect, test } from "vitest";
import { type Address, readAddress, readRange } from "../../../../daemon/domain/egress/addresses.ts";
import { Policy } from "../../../../daemon/domain/egress/allowlist.ts";
import { decide } from "../../../../daemon/domain/egress/decide.ts";
import { explain, readPlace } from "../../../../daemon/domain/egress/explain.ts";
import { boundOf, longestTurn } from "../../../harness/event-loop/longest-turn.ts";

const PRIVATE_RANGES = "10.9.0.0/16";
const NAMES: Record<string, string[]> = {
  "allowed.example": ["93.184.216.34"],
  "private.example": ["10.0.0.1"],
  "registry.example": ["10.9.9.9"],
  "both.example": ["10.0.0.1", "93.184.216.35"],
  "host.example": ["6.6.6.6"],
};
const SECRETS = Object.values(NAMES).flat();

const addressOf = (text: string): Address => readAddress(text) as Address;

async function resolve(name: string): Promise<Address[]> {
  if (name === "broken.example") throw new Error("SERVFAIL of ns1.corp.internal");
  return (NAMES[name] ?? []).map(addressOf);
}

const policyOf = (list: readonly string[]) =>
  new Policy(list, {
    privateRanges: [PRIVATE_RANGES].flatMap((text) => readRange(text) ?? []),
    isHosts: ({ family, value }) => family === 4 && value === addressOf("6.6.6.6").value,
  });

async function explained(list: readonly string[], host: string, port: number | null = null) {
  const place = readPlace(host);
  if (!place) throw new Error(`${host} is no place`);
  return await explain(place, port, { policy: policyOf(list), resolve });
}

const NO_SETTING = /^((?!private_ranges).)*$/;

type Row = [
  list: string[],
  host: string,
  port: number | null,
  verdict: string,
  reason: string | null,
  entry: string | null,
  text: RegExp,
];

test.each<Row>([
  [["allowed.example:443"], "Allowed.Example.", 443, "allowed", null, "allowed.example:443", / allowed\.example\.$/],
  [["*"], "8.8.8.8", 53, "allowed", null, "*", /^8\.8\.8\.8:53 /],
  [["8.8.8.0/24"], "8.8.8.8/32", null, "allowed", null, "8.8.8.0/24", /^8\.8\.8\.8 /],
  [["2606:4700::/32"], "2606:4700::1", 443, "allowed", null, "2606:4700::/32", /^\[2606:4700::1\]:443 /],
  [["both.example"], "both.example", 443, "allowed", null, "both.example", / both\.example\.$/],
  // An internal server: the name alone, name and CIDR without the range of the configuration, and all three.
  [
    ["registry.example"],
    "registry.example",
    5000,
    "refused",
    "no_address",
    "registry.example",
    /egress\.private_ranges/,
  ],
  [
    ["private.example", "10.0.0.0/16"],
    "private.example",
    5000,
    "refused",
    "no_address",
    "private.example",
    /egress\.private_ranges/,
  ],
  [
    ["10.9.0.0/16"],
    "registry.example",
    5000,
    "refused",
    "not_listed",
    null,
    / registry\.example:5000 .*egress\.private_ranges/,
  ],
  [
    ["registry.example", "10.9.0.0/16"],
    "registry.example",
    5000,
    "allowed",
    null,
    "registry.example",
    /^registry\.example:5000 /,
  ],
  [
    ["registry.example:5000", "10.9.0.0/16"],
    "registry.example",
    null,
    "conditional",
    null,
    "registry.example:5000",
    /^registry\.example .* 5000\b/,
  ],
  [
    ["registry.example:5000"],
    "registry.example",
    null,
    "refused",
    "no_address",
    "registry.example:5000",
    /^registry\.example:5000 /,
  ],
  [["*"], "10.1.2.3", 80, "refused", "blocked_address", "*", /egress\.private_ranges/],
  [["10.1.2.3"], "10.1.2.3", 80, "refused", "blocked_address", "10.1.2.3", / 10\.1\.2\.3\b.*egress\.private_ranges/],
  [["*"], "6.6.6.6", 80, "refused", "blocked_address", "*", /egress\.private_ranges/],
  // Other ports, and unspecified ports.
  [["a.example:443", "a.example:80"], "a.example", 22, "refused", "not_listed", null, /^a\.example:22 /],
  [
    ["allowed.example:443", "allowed.example:80"],
    "allowed.example",
    null,
    "conditional",
    null,
    "allowed.example:80",
    /\b80 and 443\b/,
  ],
  [["allowed.example:443"], "allowed.example", 80, "refused", "not_listed", null, / 443\.$/],
  [[], "allowed.example", 443, "refused", "not_listed", null, / allowed\.example:443 /],
  // Ranges that no setting opens.
  [["192.0.2.0/24"], "192.0.2.7", 443, "refused", "blocked_address", "192.0.2.0/24", NO_SETTING],
  [["203.0.113.0/24"], "203.0.113.0/24", null, "refused", "blocked_address", "203.0.113.0/24", NO_SETTING],
  [["*"], "169.254.169.254", 80, "refused", "blocked_address", "*", NO_SETTING],
  [["*"], "198.18.0.9", 443, "refused", "blocked_address", "*", /198\.18\.0\.0\/15/],
  // Ranges, part by part.
  [["*"], "8.8.0.0/16", null, "allowed", null, "*", /^8\.8\.0\.0\/16 /],
  [["8.8.8.0/24"], "8.8.0.0/16", 443, "conditional", null, null, / 8\.8\.0\.0\/16:443 /],
  [["*"], "0.0.0.0/0", null, "conditional", null, "*", / 0\.0\.0\.0\/0 /],
  [["10.0.0.0/8"], "10.0.0.0/8", null, "conditional", null, "10.0.0.0/8", / 10\.0\.0\.0\/8 /],
  [["10.9.0.0/16"], "10.9.1.0/24", null, "allowed", null, "10.9.0.0/16", /^10\.9\.1\.0\/24 /],
  [
    ["10.0.0.0/8"],
    "10.1.0.0/16",
    null,
    "refused",
    "blocked_address",
    "10.0.0.0/8",
    / 10\.0\.0\.0\/8, egress\.private_ranges/,
  ],
  [["8.8.8.8:53"], "9.9.9.0/24", null, "refused", "not_listed", null, NO_SETTING],
])("%j, %s at %s: %s, %s", async (list, host, port, verdict, reason, entry, text) => {
  const answer = await explained(list, host, port);
  expect(answer).toMatchObject({ verdict, reason, port, entry });
  expect([answer.detail, ...(answer.hint ? [answer.hint] : [])].join(" ")).toMatch(text);
});

test("it equals the guard's decision, for every list, host and port", async () => {
  const lists = [
    ["*"],
    [],
    ["registry.example", "10.9.0.0/16:443"],
    ["*.example:443", "8.8.8.8"],
    ["10.0.0.0/8", "6.6.6.6"],
  ];
  const hosts = [
    ...Object.keys(NAMES),
    "missing.example",
    "broken.example",
    "8.8.8.8",
    "10.9.9.9",
    "10.0.0.1",
    "6.6.6.6",
    "::1",
  ];
  for (const list of lists) {
    for (const host of hosts) {
      for (const port of [80, 443]) {
        const policy = policyOf(list);
        const decided = await decide(host, port, { policy: () => policy, resolve }).catch(() => null);
        const isAllowed = decided !== null && !("verdict" in decided);
        const { verdict } = await explained(list, host, port);
        expect([list, host, port, verdict]).toEqual([list, host, port, isAllowed ? "allowed" : "refused"]);
      }
    }
  }
});

test("private, missing and unresolvable names have the same explanation", async () => {
  const answerOf = async (name: string) =>
    JSON.parse(JSON.stringify(await explained(["*"], name, 443)).replaceAll(name, "NAME"));
  const answer = await answerOf("private.example");
  expect(answer).toMatchObject({ verdict: "refused", reason: "no_address" });
  for (const name of ["host.example", "missing.example", "broken.example"])
    expect(await answerOf(name)).toEqual(answer);
  for (const name of Object.keys(NAMES)) {
    const text = JSON.stringify(await explained(["*"], name, 443));
    for (const secret of [...SECRETS, "corp", PRIVATE_RANGES]) expect(text).not.toContain(secret);
  }
});

test("a name is resolved once, for any number of ports in the list, and an unlisted one not at all", async () => {
  const lookups: string[] = [];
  const list = Array.from({ length: 30 }, (_, at) => `allowed.example:${at + 1}`);
  const place = readPlace("allowed.example");
  const other = readPlace("other.example");
  if (!place || !other) throw new Error("no place");
  const deps = {
    policy: policyOf(list),
    resolve: (name: string) => {
      lookups.push(name);
      return resolve(name);
    },
  };
  await explain(place, null, deps);
  await explain(other, 443, deps);
  expect(lookups).toEqual(["allowed.example"]);
});

test("the longest list and the widest range never block the loop for more than 20 ms", {
  timeout: 60_000,
}, async () => {
  const list = Array.from({ length: 256 }, (_, at) => `${at}.0.${at}.0/24:${1000 + at}`);
  // Compiled before it is measured.
  await explained(list, "0.0.0.0/0");
  const longestMs = await longestTurn(() => explained(list, "0.0.0.0/0"));
  expect(longestMs).toBeLessThan(boundOf(20));
});

test.each(["", "a b", "10.0.0.0/40", "127.1", "https://example.org", "example.org:443", "x".repeat(300)])(
  "%j is not a destination",
  (text) => {
    expect(readPlace(text)).toBe(null);
  },
);
