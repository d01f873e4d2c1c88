/**
 * All functions of a sandbox, under KVM and over the kernel's vsock, on a virtual host with the installed package. Takes minutes, so it
 * runs if ROOMD_TEST_LONG is 1.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../harness/guests.ts";
import { bootHost, DATA, INSTALL, storyOf, WITH_KEY } from "./installed.ts";
import type { VirtualHost } from "./machine.ts";
import { LEFT_OUT } from "./virtual-host.ts";

/** The outside: an unassigned address, in a network namespace. */
const OUTSIDE = "192.52.193.2";
const SLOW_MS = 120_000;
/** A cold boot under KVM that is emulated itself, as an emulated host's limit for it is. */
const COLD_MS = 900_000;
const MANY = 20;
/** One after another on one emulated processor. */
const MANY_MS = 1_500_000;

if (LEFT_OUT !== null) console.log(`KVM on a virtual host: left out, because ${LEFT_OUT}`);

let host: VirtualHost;

// biome-ignore lint/suspicious/noExplicitAny: answers of an API
type Json = any;

const roomd = async (command: string) => await host.ok(`${WITH_KEY} roomd ${command}`);
const sh = async (agent: string, command: string) =>
  await roomd(`exec demo ${agent} --timeout 10m -- sh -c '${command}'`);
const record = async (agent: string): Promise<Json> => JSON.parse(await roomd(`sandbox get demo ${agent} --json`));
const ready = async () => (await host.run("roomd health")).status === 0;
const scopeOf = async (agent: string) => `/sys/fs/cgroup/roomd.slice/roomd-${(await record(agent)).sandbox_id}.scope`;

/** Whether it runs; throws the message of a failed sandbox. */
async function isUp(agent: string): Promise<boolean> {
  const { state, status } = await record(agent);
  if (state === "failed") throw new Error(status.message);
  return state === "running";
}

/** The file's final content, while a guest keeps writing to it. */
async function counts(agent: string): Promise<boolean> {
  const count = async () => Number(await sh(agent, `cat /root/count`).catch(() => 0));
  const before = await count();
  return await until(`${agent} counts`, async () => (await count()) > before, SLOW_MS);
}

/** A call, and the seconds that it took. With curl: on this processor the roomd command line itself takes seconds. */
async function timed(method: string, path: string, body: Json = {}): Promise<{ seconds: number; answer: Json }> {
  const call = `curl -sS -m 600 -X ${method} -H "authorization: Bearer $ROOMD_API_KEY" -H 'content-type: application/json'`;
  const output = await host.ok(
    `${WITH_KEY} ${call} -d '${JSON.stringify(body)}' -w '\\n%{time_total}' 'http://127.0.0.1:8080/v1/rooms/${path}'`,
    700_000,
  );
  const lines = output.trim().split("\n");
  return { seconds: Number(lines.at(-1)), answer: JSON.parse(lines.slice(0, -1).join("\n")) };
}

async function startCounting(agent: string): Promise<void> {
  const loop = "n=0; while :; do n=$((n+1)); echo $n >/root/.count && mv /root/.count /root/count; sleep 1; done";
  await roomd(`exec demo ${agent} --background --timeout 1h -- sh -c '${loop}'`);
}

describe.skipIf(LEFT_OUT !== null)("under KVM", () => {
  beforeAll(async () => {
    // The memory promised to MANY and to the existing sandboxes has to exist.
    host = await bootHost({ memory_mib: 12_288 });
    await host.ok(`${INSTALL} /payload/roomd.deb`);
    await host.ok(
      `ip netns add outside && ip link add inner type veth peer name outer netns outside && ip addr add 192.52.193.1/24 dev inner && ip link set inner up && ip -n outside addr add ${OUTSIDE}/24 dev outer && ip -n outside link set outer up && ip -n outside link set lo up && ip netns exec outside systemd-run -q --unit outside -p NetworkNamespacePath=/run/netns/outside python3 -m http.server 80`,
    );
    await host.ok("printf 'pool.size = 1\\n' >/etc/roomd/config.toml; roomd setup --no-demo");
    await roomd("room create demo");
  }, 900_000);

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") console.log(await storyOf(host));
  });

  afterAll(() => host?.end());

  test("sandboxes are created from the pool and on demand, and memory is plugged", async () => {
    await until(
      "a warm machine is ready",
      async () => {
        // One command that waits, not one per poll: the emulated host has one processor.
        const { status } = await host.run(
          "timeout 20 sh -c 'journalctl -fu roomd -o cat -n all | grep -qm1 ready_ms='",
        );
        return status === 0;
      },
      SLOW_MS,
    );
    const sizes = [
      ["a1", 256],
      ["a2", 1024],
      ["a4", 512],
    ] as const;
    for (const [agent, mib] of sizes) {
      console.log(await roomd(`sandbox create demo ${agent} --memory ${mib}`));
      const total = Number(await sh(agent, 'sed -n "s/^MemTotal: *\\([0-9]*\\) kB/\\1/p" /proc/meminfo')) / 1024;
      expect(total).toBeGreaterThan(mib * 0.75);
      expect(total).toBeLessThanOrEqual(mib);
    }
  });

  test("memory that a guest frees is returned to the host", async () => {
    const resident = async () =>
      Number(await host.ok(`sed -n 's/^shmem //p' ${await scopeOf("a2")}/memory.stat`)) >> 20;
    const fresh = await resident();
    await sh("a2", "mount -o remount,size=90% /dev/shm && head -c 300M /dev/zero >/dev/shm/used");
    const used = await resident();
    expect(used).toBeGreaterThan(fresh + 250);
    await sh("a2", "rm /dev/shm/used");
    const left = await until(
      "most of the memory is released",
      async () => {
        const now = await resident();
        return now < used - 250 ? now : null;
      },
      SLOW_MS,
    );
    console.log(`memory of a2: ${fresh} MiB fresh, ${used} with 300 MiB in use, ${left} without`);
    // Memory that each process of a1 would release (it has 256 MiB and has done nothing yet); memory shared by several processes of one
    // program is divided.
    const processes = await host.ok(
      `for pid in $(cat ${await scopeOf("a1")}/cgroup.procs); do echo $(cat /proc/$pid/comm) $(awk '/^Rss|^Pss(_Anon|_Shmem|_File)?:|^Private_/ { print $1 $2 }' /proc/$pid/smaps_rollup); done`,
    );
    console.log(`a1, fresh, kB by process:\n${processes}`);
  });

  test("standby uses no CPU tick, and resume continues at the same point", async () => {
    await startCounting("a1");
    await counts("a1");
    await roomd("sandbox standby demo a1");
    const used = async () => await host.ok(`sed -n 's/^usage_usec //p' ${await scopeOf("a1")}/cpu.stat`);
    const before = Number(await used());
    await Bun.sleep(5_000); // the test asserts that nothing happens in this time
    expect(Number(await used()) - before).toBeLessThan(1_000_000);
    expect((await record("a1")).state).toBe("paused");
    await roomd("sandbox resume demo a1");
    await counts("a1");
    const skew = await sh("a1", "date +%s%3N");
    expect(Math.abs(Number(skew) - Date.now())).toBeLessThan(60_000);
  });

  test("a sandbox is hibernated, forked and rolled back, over the kernel's vsock", async () => {
    const made: Json = JSON.parse(await roomd("sandbox snapshot demo a1 --json"));
    console.log(`a1 of 256 MiB was paused for ${made.paused_ms} ms, ${made.size_bytes >> 20} MiB`);
    await counts("a1");
    const forked: Json = JSON.parse(await roomd("sandbox fork demo a1 f1 f2 --json"));
    expect(forked.items.map(({ problem }: Json) => problem)).toEqual([null, null]);
    for (const agent of ["a1", "f1", "f2"]) {
      await counts(agent);
      expect(await sh(agent, "hostname")).toBe(agent);
    }
    await roomd("sandbox destroy demo f2");
    const command = { argv: ["true"], timeout_ms: 600_000 };
    const figures: Record<string, number> = {};
    const measure = async (name: string, ...call: Parameters<typeof timed>) => {
      const { seconds, answer } = await timed(...call);
      figures[name] = seconds;
      return answer;
    };
    const source = { template_id: "default", agent_id: "y1", guest_cid: 9990, memory_mib: 256 };
    await measure("create", "POST", "demo/sandboxes/from-template?wait=ready", source);
    await measure("create_first_command", "POST", "demo/sandboxes/y1/exec", command);
    await measure("fork", "POST", "demo/sandboxes/a1/fork", { agents: [{ agent_id: "y2" }] });
    await measure("fork_first_command", "POST", "demo/sandboxes/y2/exec", command);
    await measure("hibernate", "POST", "demo/sandboxes/y2/hibernate");
    await measure("resume", "POST", "demo/sandboxes/y2/resume");
    await measure("resume_first_command", "POST", "demo/sandboxes/y2/exec", command);
    console.log(
      `seconds of one call each, of 256 MiB, with others on one emulated processor: ${JSON.stringify(figures)}`,
    );
    for (const agent of ["y1", "y2"]) await roomd(`sandbox destroy demo ${agent}`);
    await sh("a1", "echo bad >/root/state");
    await roomd(`sandbox rollback demo a1 ${made.snapshot_id}`);
    expect(await sh("a1", "cat /root/state 2>/dev/null || echo none")).toBe("none");
    await counts("a1");
    await roomd("sandbox hibernate demo f1");
    expect((await record("f1")).state).toBe("hibernated");
    await host.ok("systemctl restart roomd");
    await until("the service is back", ready, SLOW_MS);
    await roomd("sandbox resume demo f1");
    await counts("f1");
    await roomd("sandbox destroy demo f1");
  }, 900_000);

  test("a room with a sandbox is checkpointed at one instant, forked and restored", async () => {
    await sh("a1", "echo then >/mnt/drive/when");
    const { answer: taken } = await timed("POST", "demo/checkpoints", { name: "then" });
    console.log(
      `a room of ${taken.snapshots?.length} was paused for ${taken.paused_ms} ms, ${taken.size_bytes >> 20} MiB`,
    );
    await sh("a1", "echo later >/mnt/drive/when; echo later >/root/state");
    const { answer: forked } = await timed("POST", "demo/fork", {
      room_id: "twin",
      checkpoint_id: taken.checkpoint_id,
    });
    expect(forked.items.map(({ problem }: Json) => problem)).toEqual(taken.snapshots.map(() => null));
    const inTwin = async (line: string) => await roomd(`exec twin a1 --timeout 10m -- sh -c '${line}'`);
    expect(await inTwin("cat /mnt/drive/when; hostname")).toBe("then\na1");
    await roomd("room destroy twin --delete-drive");
    const { answer: restored } = await timed("POST", `demo/checkpoints/${taken.checkpoint_id}/restore`);
    expect(restored.items.map(({ problem }: Json) => problem)).toEqual(taken.snapshots.map(() => null));
    expect(await sh("a1", "cat /mnt/drive/when; cat /root/state 2>/dev/null || echo none")).toBe("then\nnone");
    await counts("a1");
    await roomd(`checkpoint delete demo ${taken.checkpoint_id}`);
  }, 1_800_000);

  test("a sandbox gets its drive back after a kill of its virtiofsd, and its command continues", async () => {
    await sh("a1", "echo before >/mnt/drive/kept");
    await host.ok(
      `for p in $(cat ${await scopeOf("a1")}/cgroup.procs); do grep -q virtiofsd /proc/$p/comm && kill -9 $p; done; true`,
    );
    const content = async () => await sh("a1", "cat /mnt/drive/kept").catch(() => "");
    expect(await until("the drive is back", async () => (await content()) === "before", SLOW_MS)).toBe(true);
    await sh("a1", "echo after >/mnt/drive/kept");
    expect(await sh("a2", "cat /mnt/drive/kept")).toBe("after");
    await counts("a1");
  });

  test("a sandbox reaches its allowlist, and nothing else", async () => {
    const fetch = "curl -sSf -m 20 -o /dev/null -w %{http_code} http://";
    expect(await sh("a2", `${fetch}${OUTSIDE}/`)).toContain("200");
    await roomd(`egress set demo a2 ${OUTSIDE}:80`);
    expect(await sh("a2", `${fetch}${OUTSIDE}/`)).toContain("200");
    for (const [list, place] of [
      [`${OUTSIDE}:81`, `${OUTSIDE}/`],
      ["'*'", "10.0.2.15:8080/"],
      ["'*'", "169.254.169.254/"],
    ]) {
      await roomd(`egress set demo a2 ${list}`);
      expect(await host.run(`${WITH_KEY} roomd exec demo a2 -- ${fetch}${place}`)).not.toMatchObject({ status: 0 });
    }
  });

  test("a sandbox is reachable by URL, ssh and terminals", async () => {
    await roomd("exec demo a2 --background --timeout 1h --cwd /etc -- python3 -m http.server 8000");
    const port = JSON.parse(await roomd("port expose demo a2 8000 --json"));
    const get = `curl -sSf -m 20 -H 'X-Port-Token: ${port.token}' ${port.url}hostname`;
    expect(await until("the sandbox answers", async () => (await host.run(get)).text.trim() === "a2", SLOW_MS)).toBe(
      true,
    );

    await host.ok("ssh-keygen -q -t ed25519 -N '' -f /root/me && . /var/lib/roomd/setup.env; true");
    await roomd("org ssh-key add /root/me.pub");
    const options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i /root/me";
    expect(await host.ok(`ssh ${options} -p 2222 a2@demo@127.0.0.1 'hostname; exit 0'`)).toBe("a2");
    expect((await host.run(`ssh ${options} -p 2222 a2@demo@127.0.0.1 'exit 7'`)).status).toBe(7);
    await host.ok(`scp ${options} -P 2222 /usr/lib/roomd/roomd-agent a2@demo@127.0.0.1:/root/`);
    const digests = [
      await host.ok("sha256sum </usr/lib/roomd/roomd-agent"),
      await sh("a2", "sha256sum </root/roomd-agent"),
    ];
    expect(digests[0]).toBe(digests[1]);

    const output = await host.ok(
      `${WITH_KEY} script -qec "roomd shell demo a2 -- sh -c 'tty; stty size'" /dev/null </dev/null`,
    );
    // The bytes that `script` sends at the end of its own input are echoed at any point between the two.
    expect(output).toMatch(/\/dev\/pts\/\d+\D+\d+ \d+/);
  });

  test("a room is backed up while a sandbox runs, and restored on an empty service", async () => {
    await roomd("backup /root/roomd.tar");
    await host.ok(
      "mkdir /root/elsewhere && cd /root/elsewhere && ROOMD_DATA_DIR=/root/elsewhere/data ROOMD_RUNTIME_DIR=/root/elsewhere/run roomd restore /root/roomd.tar",
    );
    expect(await host.ok("cat /root/elsewhere/data/rooms/*/drive/kept")).toBe("after");
    await host.ok("rm -rf /root/elsewhere /root/roomd.tar");
  });

  test("twenty are created concurrently, each with its own drive and name", async () => {
    for (const agent of ["a2", "a4"]) await roomd(`sandbox destroy demo ${agent}`);
    // More than plan free allows.
    const { org_id } = JSON.parse(await roomd("whoami --json"));
    await host.ok(`roomd org set-plan --org ${org_id} --plan starter`);
    const began = performance.now();
    const create = `curl -sS -m 300 -H "authorization: Bearer $ROOMD_API_KEY" -H 'content-type: application/json'`;
    const answers = await host.ok(
      `${WITH_KEY} for i in $(seq ${MANY}); do ( answer=$(${create} -d '{"template_id":"default","agent_id":"m'$i'","guest_cid":'$((9200+i))',"memory_mib":256}' "http://127.0.0.1:8080/v1/rooms/demo/sandboxes/from-template?wait=none"); printf '%s\\n' "$answer" ) & done; wait`,
    );
    const refused = answers.split("\n").filter((answer) => JSON.parse(answer).state === undefined);
    expect([refused, answers.split("\n").length]).toEqual([[], MANY]);
    // By curl: on this processor the command line takes seconds, which the guests need.
    const room = "http://127.0.0.1:8080/v1/rooms/demo/sandboxes";
    const request = (method: string, path: string) =>
      `curl -sS -m 300 -X ${method} -H "authorization: Bearer $ROOMD_API_KEY" ${room}${path}`;
    const list = async () => JSON.parse(await host.ok(`${WITH_KEY} sleep 5; ${request("GET", "?limit=100")}`)).items;
    // Each running one takes as much of the one emulated processor as the next one needs to start: so it is put on standby, with all its
    // processes.
    await until(
      "all sandboxes are running",
      async () => {
        const all: Json[] = (await list()).filter(({ agent_id }: Json) => agent_id.startsWith("m"));
        const failed = all.find(({ state }) => state === "failed");
        if (failed) throw new Error(`${failed.agent_id}: ${failed.status.message}`);
        const running = all.filter(({ state }) => state === "running").map(({ agent_id }) => agent_id);
        if (running.length > 0)
          await host.ok(
            `${WITH_KEY} for m in ${running.join(" ")}; do ${request("POST", "/$m/standby")} >/dev/null; done`,
          );
        return all.filter(({ state }) => state === "paused").length === MANY;
      },
      MANY_MS,
    );
    console.log(
      `${MANY} concurrent sandboxes on one emulated processor: ${((performance.now() - began) / 1000).toFixed(1)} s`,
    );
    for (const agent of ["m1", `m${MANY}`]) {
      await roomd(`sandbox resume demo ${agent}`);
      expect(await sh(agent, "hostname; cat /mnt/drive/kept")).toBe(`${agent}\nafter`);
    }
    await host.ok("systemctl kill -s KILL roomd");
    await until("the service answers again", ready, SLOW_MS);
    await counts("a1");
    const states = (await list()).map(({ state }: Json) => state).sort();
    expect(states).toEqual([...Array(MANY - 2).fill("paused"), ...Array(3).fill("running")]);
    await roomd("room create other && true");
    await host.ok(`${WITH_KEY} for i in $(seq ${MANY}); do ${request("DELETE", "/m$i")} >/dev/null; done`, MANY_MS);
    expect((await host.ok("ls -d /sys/fs/cgroup/roomd.slice/*.scope")).split("\n").length).toBeLessThanOrEqual(2);
  });

  test("a sandbox continues while the service runs without KVM, and new ones use KVM again afterwards", async () => {
    for (const acceleration of ["tcg", "kvm"]) {
      await host.ok(
        `printf 'pool.size = 0\\nacceleration = "${acceleration}"\\n' >/etc/roomd/config.toml; systemctl restart roomd`,
      );
      await until("the service answers again", ready, SLOW_MS);
      expect(JSON.parse(await host.ok("roomd health --json")).acceleration).toBe(acceleration);
      await counts("a1");
    }
    await roomd("sandbox create demo back --memory 256");
    expect(await sh("back", "hostname")).toBe("back");
  });

  test("a destroyed room leaves nothing", async () => {
    // Idle pool machines belong to no room.
    await host.ok("printf 'pool.size = 0\\n' >/etc/roomd/config.toml; systemctl restart roomd");
    await until("the service answers again", ready, SLOW_MS);
    await roomd("room destroy demo --delete-drive");
    expect((await host.run("ls -d /sys/fs/cgroup/roomd.slice/*.scope; pgrep 'qemu|virtiofsd'")).text).not.toMatch(
      /^\d+$/m,
    );
    expect(await host.ok(`ls ${DATA}/sandboxes`)).toBe("");
  });
});

describe.skipIf(LEFT_OUT !== null)("on another host", () => {
  test("sandboxes have 2 and 4 processors", async () => {
    // Those take turns at the host's one: QEMU's emulated hosts of several reset their guests.
    host = await bootHost();
    try {
      await host.ok(`${INSTALL} /payload/roomd.deb`);
      await host.ok(
        "printf 'pool.size = 0\\nacceleration = \"kvm\"\\nlimits.vcpus = 4\\n' >/etc/roomd/config.toml; roomd setup --no-demo",
      );
      await roomd("room create demo");
      for (const vcpus of [2, 4]) {
        console.log(await roomd(`sandbox create demo v${vcpus} --vcpus ${vcpus} --memory 512`));
        await until("the sandbox is running", async () => isUp(`v${vcpus}`), COLD_MS);
        expect(await sh(`v${vcpus}`, "nproc")).toBe(String(vcpus));
      }
      // In the meantime the template is saved with two processors; the next sandbox starts from that.
      const saved = "journalctl -u roomd -o cat | grep took_ms= | grep -q vcpu_count=2";
      await until("the template is saved", async () => (await host.run(saved)).status === 0, COLD_MS);
      await roomd("sandbox create demo again --vcpus 2 --memory 512");
      await until("the sandbox is running", async () => isUp("again"), COLD_MS);
      expect(await sh("again", "nproc")).toBe("2");
      expect(await roomd("sandbox get demo again --json")).toMatch(/"start_mode": ?"snapshot"/);
    } catch (error) {
      console.log(await storyOf(host));
      throw error;
    } finally {
      host.end();
    }
  });

  test("a template that was saved on another host is reported by name, and boots cold", async () => {
    host = await bootHost({ cpu: "max,model-id=Another Processor" });
    try {
      await host.ok(`${INSTALL} /payload/roomd.deb`);
      await host.ok("printf 'pool.size = 0\nacceleration = \"kvm\"\n' >/etc/roomd/config.toml; roomd setup --no-demo");
      await roomd("room create demo && true");
      await roomd("sandbox create demo cold --memory 512");
      await until("the sandbox is running", () => isUp("cold"), COLD_MS);
      const result = await host.run("journalctl -u roomd -o cat; roomd doctor");
      expect(result.text).toContain("Another Processor");
    } catch (error) {
      console.log(await storyOf(host));
      throw error;
    } finally {
      host.end();
    }
  });

  test("without processor virtualization, doctor explains how to enable it", async () => {
    host = await bootHost({ cpu: "max,-svm" });
    try {
      await host.ok(`${INSTALL} /payload/roomd.deb`);
      const { text } = await host.run("roomd doctor");
      expect(text).toMatch(/\/dev\/kvm/);
      expect(text).toMatch(/nested virtualization/i);
    } catch (error) {
      console.log(await storyOf(host));
      throw error;
    } finally {
      host.end();
    }
  });
});
