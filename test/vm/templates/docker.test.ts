/**
 * The template `docker`: containers run, build and communicate with each other, and outside they reach only the destinations on the
 * sandbox's allowlist. Building it takes minutes, so it runs if ROOMD_TEST_LONG is 1.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ExposedPort } from "../../harness/exposed-port.ts";
import { LONG, until, untilState, withGuests } from "../../harness/guests.ts";
import { buildRecipe, ownTemplates, shippedTemplate } from "../../harness/images/built-templates.ts";
import { registryConfig } from "../../harness/images/image-registry.ts";
import { busyboxRoot, writeImage } from "../../harness/images/oci-image.ts";
import { Outside } from "../../harness/images/outside.ts";

const NAMES = ["allowed.example", "other.example"];
const REGISTRY_PORT = 5000;
const BUILD_MS = 1_200_000;
/** Emulated, and each of its processes is new. */
const EXEC_MS = 170_000;

let outside: Outside;
const prepare = async (daemon: Parameters<typeof ownTemplates>[0]) => {
  ownTemplates(daemon);
  outside = await Outside.start(NAMES);
  daemon.env.ROOMD_EGRESS_HOSTS_FILE = outside.hostsFile;
};

/** An image of the sandbox's own busybox, which needs no registry. */
const IMAGE = `
set -eu
mkdir -p /root/image/bin && cp /root/busybox /root/image/bin/busybox
for name in sh wget cat id nslookup httpd sleep echo; do ln -sf busybox /root/image/bin/$name; done
tar -c -C /root/image . | docker import - bb`;

const COMPOSE = `
services:
  web:
    image: bb
    command: ["/bin/sh", "-c", "echo from web >/index.html; exec httpd -f -p 80"]
    ports: ["8000:80"]
  client:
    image: bb
    depends_on: [web]
    command: ["/bin/sh", "-c", "n=0; until wget -qO- http://web/; do n=$$((n+1)); [ $$n -lt 30 ] || exit 1; sleep 1; done"]
`;

/** The shipped recipe, with a container started before it is saved, from an image that it builds itself. */
const SERVING = readFileSync(resolve("packaging/guest-image/docker.toml"), "utf8")
  .replace('template_id = "docker"', 'template_id = "serving"')
  .replace('"ca-certificates",', '"busybox-static",\n  "ca-certificates",')
  .replace(
    "setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null &\n",
    `setsid dockerd >/var/log/dockerd.log 2>&1 </dev/null &
until docker info >/dev/null 2>&1; do sleep 1; done
mkdir -p /root/image/bin && cp /bin/busybox /root/image/bin/ && ln -s busybox /root/image/bin/sh
echo 'from the template' >/root/image/index.html
tar -c -C /root/image . | docker import - served
docker run -d --name up -p 8000:80 served busybox httpd -f -p 80 -h /
`,
  );

if (!LONG) console.log("docker: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it");

describe.skipIf(!LONG)("long tests", () => {
  withGuests("docker", { prepare }, (guests) => {
    const sh = async (command: string) => {
      const result = await guests.daemon.exec("d", "host", { command, timeout_ms: EXEC_MS, max_output_bytes: 65_536 });
      if (result.exit_code !== 0)
        throw new Error(`${command}: ${result.exit_code}\n${result.stdout}\n${result.stderr}`);
      return String(result.stdout).trimEnd();
    };
    const inContainer = async (command: string) =>
      await guests.daemon.exec("d", "host", {
        argv: ["docker", "run", "--rm", "bb", "sh", "-c", command],
        timeout_ms: EXEC_MS,
      });

    beforeAll(async () => {
      const { daemon } = guests;
      await shippedTemplate(daemon, "docker");
      outside.setHosts({ "allowed.example": outside.v4, "other.example": outside.v4 });
      await daemon.room("d");
      const egress_allowlist = ["allowed.example", `allowed.example:${REGISTRY_PORT}`];
      const record = await daemon.sandbox("d", "host", guests.cid(), {
        template_id: "docker",
        memory_mib: 1024,
        egress_allowlist,
      });
      expect(record.start_mode).toBe("snapshot");
      console.log(`a sandbox with Docker up, created in ${record.create_wall_ms} ms`);
      const busybox = Buffer.from(await Bun.file("/bin/busybox").bytes()).toString("base64");
      await daemon.ok("POST", "/v1/rooms/d/drive/write", { path: "/busybox", content_b64: busybox });
      await sh("install -m 755 /mnt/drive/busybox /root/busybox");
      await sh(IMAGE);
    }, BUILD_MS);

    afterAll(() => outside?.[Symbol.asyncDispose]());

    test(
      "a container runs, also as another user and within resource limits",
      async () => {
        expect((await inContainer("id -u")).stdout).toBe("0\n");
        expect(
          await sh(
            "docker run --rm --user 65534 -m 64m --cpus .5 --pids-limit 50 bb sh -c 'id -u; cat /sys/fs/cgroup/memory.max'",
          ),
        ).toBe("65534\n67108864");
      },
      EXEC_MS * 2,
    );

    test(
      "a container reaches allowlisted names, and nothing else",
      async () => {
        expect(await inContainer("wget -qO- http://allowed.example/")).toMatchObject({
          exit_code: 0,
          stdout: "here\n",
        });
        for (const refused of ["other.example", outside.v4]) {
          const { exit_code, stderr } = await inContainer(`wget -qO- http://${refused}/`);
          expect([exit_code, stderr]).toEqual([1, "wget: server returned error: HTTP/1.1 403 Forbidden\n"]);
        }
        // Queries to another resolver are answered by the same one.
        expect((await inContainer("nslookup allowed.example 198.51.100.53")).stdout).toContain("Address");
        const { items } = await guests.daemon.ok("GET", "/v1/rooms/d/audit?event=egress.denied");
        expect(items.map(({ details }: { details: { host: string } }) => details.host)).toContain("other.example");
      },
      EXEC_MS * 4,
    );

    test(
      "an image is pulled from an allowlisted registry, and from no other",
      async () => {
        const { daemon } = guests;
        const { v4, directory, issued } = outside;
        const addr = `${v4}:${REGISTRY_PORT}`;
        outside.run("docker-registry", "serve", registryConfig(join(directory, "registry"), addr, issued));
        const answers = () =>
          fetch(`https://${addr}/v2/`, { tls: { rejectUnauthorized: false } }).then(
            ({ ok }) => ok,
            () => false,
          );
        await until("the registry answers", answers, 20_000);
        const from = await writeImage(join(daemon.home, "tool"), [busyboxRoot()], { Env: ["PATH=/bin"] });
        const push = ["--insecure-policy", "copy", "--dest-tls-verify=false", from, `docker://${addr}/tool:1`];
        expect(spawnSync("skopeo", push, { encoding: "utf8" })).toMatchObject({ status: 0 });
        const authority = Buffer.from(issued.authority).toString("base64");
        for (const name of NAMES) {
          const trust = `/etc/docker/certs.d/${name}:${REGISTRY_PORT}`;
          await sh(`mkdir -p ${trust} && echo ${authority} | base64 -d >${trust}/ca.crt`);
        }
        const image = (name: string) => `${name}:${REGISTRY_PORT}/tool:1`;
        await sh(`docker pull -q ${image("allowed.example")}`);
        expect(await sh(`docker run --rm ${image("allowed.example")} sh -c 'echo pulled'`)).toBe("pulled");
        const command = `docker pull -q ${image("other.example")}`;
        const refused = await daemon.exec("d", "host", { command, timeout_ms: EXEC_MS });
        expect(refused.exit_code).not.toBe(0);
        const { items } = await daemon.ok("GET", "/v1/rooms/d/audit?event=egress.denied");
        const denied = items.map(({ details }: { details: { host: string; port: number } }) => details);
        expect(denied).toContainEqual(expect.objectContaining({ host: "other.example", port: REGISTRY_PORT }));
      },
      EXEC_MS * 3,
    );

    test(
      "containers of a compose file reach each other, and a published port is exposed",
      async () => {
        await sh(
          `mkdir -p /root/app && cat >/root/app/compose.yaml <<'END'\n${COMPOSE}\nEND\ncd /root/app && docker compose up -d --quiet-pull 2>&1`,
        );
        expect(
          await sh("cd /root/app && docker compose wait client >/dev/null; docker compose logs --no-log-prefix client"),
        ).toContain("from web");
        const port = await ExposedPort.expose(guests.daemon, "d/sandboxes/host", { port: 8000 });
        expect(await (await port.fetch("")).text()).toBe("from web\n");
      },
      EXEC_MS * 3,
    );

    test(
      "an image is built, and its steps reach allowlisted names",
      async () => {
        const file = 'FROM bb\nRUN wget -qO /got http://allowed.example/\nCMD ["cat", "/got"]';
        await sh(`mkdir -p /root/b && printf '%s' '${file}' >/root/b/Dockerfile && docker build -q -t built /root/b`);
        expect(await sh("docker run --rm built")).toBe("here");
      },
      EXEC_MS * 2,
    );

    test(
      "a sandbox of a template with a container in it has that running, with its port",
      async () => {
        const { daemon } = guests;
        const built = await buildRecipe(daemon, "serving", SERVING);
        expect([built.status, built.stderr]).toEqual([0, expect.any(String)]);
        for (const agent of ["one", "other"]) {
          const record = await daemon.sandbox("d", agent, guests.cid(), { template_id: "serving", memory_mib: 1024 });
          expect(record.start_mode).toBe("snapshot");
          const port = await ExposedPort.expose(daemon, `d/sandboxes/${agent}`, { port: 8000 });
          expect(await (await port.fetch("")).text()).toBe("from the template\n");
          expect(await daemon.sh("d", agent, "docker ps --format '{{.Names}} {{.State}}'")).toBe("up running");
        }
      },
      BUILD_MS,
    );

    test(
      "a running container survives standby",
      async () => {
        await guests.daemon.ok("POST", "/v1/rooms/d/sandboxes/host/standby", {});
        await guests.daemon.ok("POST", "/v1/rooms/d/sandboxes/host/resume", {});
        await untilState(guests.daemon, "d", "host", "running");
        expect(await sh("curl -sS http://127.0.0.1:8000/")).toBe("from web");
      },
      EXEC_MS,
    );
  });
});
