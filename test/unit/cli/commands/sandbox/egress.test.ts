/** `roomd egress get` and `roomd sandbox get` for people: a policy without a list that has no effect. */
import { expect, test } from "vitest";
import { run, standIn } from "../../cli-fixture.ts";

const egress = (mode: string, ...allowlist: string[]) => ({ mode, allowlist, revision: 1, guest_net: true });

test.each([
  [egress("public"), ["mode       public (every public address)"]],
  [egress("public", "*", "10.0.0.5"), ["mode       public (every public address)", "allowlist  *, 10.0.0.5"]],
  [egress("none"), ["mode       none (no destination)"]],
  [egress("allowlist"), ["mode       allowlist", "allowlist  none"]],
  [egress("allowlist", "pypi.org:443"), ["mode       allowlist", "allowlist  pypi.org:443"]],
])("%j", async (policy, policyLines) => {
  await using service = await standIn(() => Response.json(policy));
  const { stdout } = await run(["egress", "get", "r", "a"], service);
  const others = ["revision   1", "guest net  yes"];
  expect(stdout.trimEnd().split("\n")).toEqual([...policyLines, ...others]);
  await using whole = await standIn(() => Response.json({ agent_id: "a", egress: policy }));
  const record = await run(["sandbox", "get", "r", "a"], whole);
  expect(record.stdout.includes("allowlist none")).toBe(policyLines.includes("allowlist  none"));
  expect(JSON.parse((await run(["egress", "get", "r", "a", "--json"], service)).stdout)).toEqual(policy);
});
