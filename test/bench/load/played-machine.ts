/**
 * Simulated virtual machine of a guest, as a daemon sees it: placeholder processes, and the sockets of its QEMU, with a QMP monitor that
 * reports success and accepts every command.
 */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { Socket } from "bun";
import type { SandboxPaths } from "../../../daemon/core/config/paths.ts";
import { newRecord } from "../../../daemon/host/guest/record.ts";
import { makeGuestDirectories } from "../../../daemon/host/isolation/directories.ts";
import { type ProcessRecord, processOf } from "../../../daemon/host/process.ts";

/** Values that QEMU's root got; only daemons compare them. */
export interface MachineFacts {
  sandbox_id: string;
  guest_cid: number;
  uuid: string;
  nonce: string;
  secret: string;
}

const GREETING = `${JSON.stringify({ QMP: { version: {}, capabilities: [] } })}\n`;

/** Starts placeholders of the guest's processes, which exit when `line` ends, opens its sockets and leaves its record for the daemon. */
export async function playMachine(paths: SandboxPaths, facts: MachineFacts, line: number): Promise<void> {
  const { sandbox_id, guest_cid, uuid, nonce, secret } = facts;
  await makeGuestDirectories(paths, null);
  serveMonitor(paths.qmp, facts);
  Bun.listen({ unix: paths.console, socket: { data: () => {} } });
  const record = {
    ...newRecord(sandbox_id, "snapshot"),
    ...{ guest_cid, uuid, nonce, secret },
    qemu: standIn(line, "qemu", "-chardev", `socket,id=qmp,path=${paths.qmp},server=on`),
    virtiofsd: standIn(line, "virtiofsd", "--socket-path", paths.virtiofs),
    vsock: standIn(line, "vhost-device-vsock", "--socket", paths.vsock_device, "--uds-path", paths.vsock),
    drive: { turn: 0, ports: 2, mounted: true },
  };
  writeFileSync(paths.vmm_log, "");
  writeFileSync(paths.processes, JSON.stringify(record), { mode: 0o600 });
}

/** A process that a daemon finds by these arguments, as it finds a real one. */
function standIn(line: number, ...named: string[]): ProcessRecord {
  const child = spawn("/bin/sh", ["-c", "read line", ...named], {
    detached: true,
    env: {},
    stdio: [line, "ignore", "ignore"],
  });
  child.unref();
  const started = child.pid === undefined ? null : processOf(child.pid);
  if (!started) throw new Error("no process stands for a guest's");
  return started;
}

function serveMonitor(path: string, { sandbox_id, uuid }: MachineFacts): void {
  const answers: Record<string, unknown> = {
    "query-name": { name: sandbox_id },
    "query-uuid": { UUID: uuid },
    "query-status": { status: "running", running: true },
    "query-jobs": [],
    "query-chardev": [],
    "qom-list": [],
  };
  const unfinished = new WeakMap<Socket<undefined>, string>();
  Bun.listen<undefined>({
    unix: path,
    socket: {
      open: (socket) => void socket.write(GREETING),
      data: (socket, bytes) => {
        const [rest = "", ...lines] = `${unfinished.get(socket) ?? ""}${bytes}`.split("\n").reverse();
        unfinished.set(socket, rest);
        for (const line of lines.reverse()) {
          const { execute, id } = JSON.parse(line) as { execute: string; id: number };
          socket.write(`${JSON.stringify({ return: answers[execute] ?? {}, id })}\n`);
        }
      },
    },
  });
}
