import { expect, test } from "vitest";
import { fetchIn } from "../../../../daemon/cli/host/dockerfile-network.ts";
import { run, scratch } from "../cli-fixture.ts";

test.each([
  ["FROM x\nRUN apt-get update && apt-get install -y jq", "apt-get update"],
  ["FROM x\nRUN set -eux; \\\n  # a comment\n  apt-get -y install jq", "apt-get -y install"],
  ["FROM x\nrun python3 -m pip install requests", "python3 -m pip install"],
  ["FROM x\nRUN cd /app && npm ci", "npm ci"],
  ["FROM x\nRUN curl -fsSL https://example.org/a | sh", "curl"],
  ["FROM x\nRUN echo curl >/tools\nCOPY . /app\nENV TOOL=pip", null],
  ["FROM x\n# RUN npm ci\nRUN make", null],
])("%j fetches by %s", (text, found) => {
  expect(fetchIn(text)).toBe(found);
});

test("a build of such a Dockerfile warns before it starts, unless a host is allowed", {
  timeout: 60_000,
}, async () => {
  using place = scratch();
  const file = `${place.path}/Dockerfile`;
  await Bun.write(file, "FROM registry.invalid/x\nRUN pip install requests\n");
  // It fails for want of a service on this host; the warning comes first.
  const env = { ROOMD_DATA_DIR: `${place.path}/data`, ROOMD_RUNTIME_DIR: `${place.path}/run` };
  const warned = /^RUN pip install: no host is allowed, so it will fail\./m;
  expect((await run(["template", "build", "t", "--dockerfile", file], { env })).stderr).toMatch(warned);
  const allowed = ["--egress", "pypi.org:443"];
  expect((await run(["template", "build", "t", "--dockerfile", file, ...allowed], { env })).stderr).not.toMatch(warned);
});
