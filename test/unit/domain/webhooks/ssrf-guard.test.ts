/** Permitted destinations of webhooks, as far as the URL determines it; the addresses of names are tested in test/api/webhooks.test.ts. */
import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { loadConfig } from "../../../../daemon/core/config/config.ts";
import { type Address, readAddress, readRange } from "../../../../daemon/domain/egress/addresses.ts";
import { type HostResolver, NotResolved } from "../../../../daemon/domain/egress/resolver.ts";
import { attempt } from "../../../../daemon/domain/webhooks/attempt.ts";
import type { WebhookSecrets } from "../../../../daemon/domain/webhooks/secrets.ts";
import { planSsrfGuard, SsrfGuard } from "../../../../daemon/domain/webhooks/ssrf-guard.ts";
import type { WebhookRow } from "../../../../daemon/domain/webhooks/table.ts";

const reachOf = (...ranges: string[]) =>
  new SsrfGuard({ private_ranges: ranges.flatMap((text) => readRange(text) ?? []), hosts_file: "" });
const nobody = { org_id: "org_1", sandbox_id: "whk_1" };
const ever = new AbortController().signal;
/** A guard that resolves names with this function. */
const byNames = (resolve: HostResolver["resolve"]) =>
  new SsrfGuard({ private_ranges: [], hosts_file: "" }, { resolve });

describe("without a list", () => {
  test.each([
    "https://example.org/",
    "https://example.org:8443/hooks?x=1",
    "https://example.org:1024/",
    "https://8.8.8.8/",
    "https://[2606:4700::1111]/",
  ])("%s is allowed", (url) => {
    expect(reachOf().refusalOf(url)).toBeNull();
  });

  test.each([
    ...["http://example.org/", "ftp://example.org/", "example.org", "https://", "https://a b/"],
    ...["https://example.org:80/", "https://example.org:1023/", "https://example.org:22/"],
    ...["https://me@example.org/", "https://me:you@example.org/", "https://example.org/#part"],
    // Addresses in every spelling that a URL may have.
    ...["https://127.0.0.1/", "https://127.1/", "https://0x7f000001/", "https://2130706433/", "https://0/"],
    ...["https://10.0.0.1/", "https://172.16.0.1/", "https://192.168.0.1/", "https://100.64.0.1/"],
    ...["https://169.254.169.254/", "https://168.63.129.16/", "https://224.0.0.1/", "https://255.255.255.255/"],
    ...["https://[::1]/", "https://[::]/", "https://[fd00::1]/", "https://[fe80::1]/", "https://[::ffff:10.0.0.1]/"],
    ...["https://[64:ff9b::a00:1]/", "https://[2002:a00:1::]/"],
  ])("%s is refused", async (url) => {
    expect(reachOf().refusalOf(url)).toEqual(expect.any(String));
    if (URL.canParse(url)) await expect(reachOf().addressesOf(new URL(url), nobody, ever)).rejects.toThrow(/URL/);
  });

  test("this host's own addresses are refused, including public ones", () => {
    const own = Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address));
    for (const address of own.filter((each) => !each.includes("%") && !each.startsWith("fe80"))) {
      const host = address.includes(":") ? `[${address}]` : address;
      expect(reachOf().refusalOf(`https://${host}/`), address).not.toBeNull();
    }
  });
});

describe("a name", () => {
  const URL_OF_NAME = new URL("https://name.internal/");

  test("is refused with the same message whether it exists or not", async () => {
    const refused = await Promise.all(
      [
        async () => [],
        async () => [readAddress("10.0.0.1") as Address],
        async () => {
          throw new NotResolved("no answer");
        },
      ].map((resolve) => byNames(resolve).addressesOf(URL_OF_NAME, nobody, ever).catch(String)),
    );
    expect(refused[0]).toMatch(/^Unreachable: name\.internal /);
    expect(new Set(refused).size).toBe(1);
  });

  test("with a long lookup is awaited until the caller aborts", async () => {
    const given = new AbortController();
    const never = byNames(() => new Promise<never>(() => {}));
    const webhook = { org_id: "org_1", webhook_id: "whk_1" } as WebhookRow;
    const secrets = { urlOf: () => URL_OF_NAME.href } as unknown as WebhookSecrets;
    const trying = attempt({ reach: never, secrets }, webhook, { id: "evt_1", body: "{}" }, given.signal);
    given.abort();
    expect(await trying).toMatchObject({ delivered: false, status: null, error: expect.stringContaining("cancelled") });
  });
});

describe("an operator's list", () => {
  const reach = reachOf("10.1.0.0/16", "127.0.0.1", "169.254.0.0/16");
  test.each(["https://10.1.2.3/", "https://127.0.0.1/"])("allows %s", (url) => {
    expect(reach.refusalOf(url)).toBeNull();
  });

  test.each(["https://10.2.0.1/", "https://127.0.0.2/", "https://169.254.169.254/"])("does not allow %s", (url) => {
    expect(reach.refusalOf(url)).not.toBeNull();
  });

  test("that is invalid prevents the start, with the name of the entry", () => {
    const { config } = loadConfig({ file: "/dev/null", env: { ROOMD_WEBHOOKS_PRIVATE_RANGES: "10.0.0.0/8, mine" } });
    expect(() => planSsrfGuard(config)).toThrow(/^webhooks\.private_ranges: mine /);
  });
});
