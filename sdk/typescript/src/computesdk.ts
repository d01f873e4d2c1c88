/** roomd as a provider of computesdk: each of its sandboxes has its own room, whose name is the sandbox's id. */
import { type CommandResult, defineProvider, type RunCommandOptions } from "@computesdk/provider";
import type { ClientOptions } from "./client.ts";
import { NotFoundError, RoomdError } from "./errors.ts";
import type { CommandOptions } from "./execution.ts";
import { exitCodeOf } from "./exit-code.ts";
import { gathered, orNull } from "./files.ts";
import { Roomd } from "./roomd.ts";
import type { Sandbox } from "./sandbox.ts";
import { GRACE_SECONDS, type SandboxOptions } from "./sandbox-create.ts";

/** `egress`: permitted destinations of sandboxes; the host's `egress.default` if absent, none if `[]`. */
export type RoomdConfig = ClientOptions & Pick<SandboxOptions, "template" | "memoryMib" | "vcpus" | "egress">;

const AGENT = "main";
/** Label of rooms that this adapter created. */
const LABEL = { made_by: "computesdk" };

interface HeldSandbox {
  roomd: Roomd;
  sandbox: Sandbox;
}

export const roomd = defineProvider<HeldSandbox, RoomdConfig>({
  name: "roomd",
  methods: {
    sandbox: {
      create: async (config, options = {}) => {
        const service = serviceOf(config);
        const labels = { ...labelsOf(options.metadata), ...LABEL };
        const createOptions = wantedOf(config, options);
        const { maxDurationSeconds } = createOptions;
        const room = await service.rooms.create({
          labels,
          ...(maxDurationSeconds === undefined ? {} : { ttlSeconds: maxDurationSeconds + GRACE_SECONDS }),
          ...(options.name === undefined ? {} : { roomId: options.name }),
        });
        try {
          const sandbox = await room.createSandbox(AGENT, createOptions);
          return { sandbox: { roomd: service, sandbox }, sandboxId: room.id };
        } catch (error) {
          await room.destroy({ drive: "delete" }).catch(() => {});
          throw error;
        }
      },
      getById: async (config, sandboxId) => {
        const held = heldOf(serviceOf(config), sandboxId);
        try {
          await held.sandbox.get();
        } catch (error) {
          if (error instanceof NotFoundError) return null;
          throw error;
        }
        return { sandbox: held, sandboxId };
      },
      list: async (config) => {
        const service = serviceOf(config);
        const found = [];
        for await (const { room_id } of service.client.items("room_list", {
          state: "active",
          label: "made_by:computesdk",
        })) {
          found.push({ sandbox: heldOf(service, room_id), sandboxId: room_id });
        }
        return found;
      },
      destroy: async (config, sandboxId) => {
        await serviceOf(config).rooms.open(sandboxId).destroy({ drive: "delete" });
      },
      runCommand: (held, command, options = {}) => run(held, command, options),
      streamCommand: run,
      getInfo: async ({ sandbox }) => {
        const { state, created_at, expires_at, ...record } = await sandbox.get();
        return {
          id: sandbox.roomId,
          provider: "roomd",
          status: state === "failed" ? "error" : state === "running" ? "running" : "stopped",
          createdAt: new Date(created_at),
          timeout: expires_at === null ? 0 : Date.parse(expires_at) - Date.parse(created_at),
          metadata: record.labels,
        };
      },
      // The caller cannot be given a header here: the port is public, with a URL that cannot be guessed.
      getUrl: async ({ sandbox }, { port }) => (await sandbox.exposePort(port, { visibility: "public" })).url,
      filesystem: {
        readFile: async ({ sandbox }, path) => sandbox.files.readText(path),
        writeFile: async ({ sandbox }, path, content) => void (await sandbox.files.write(path, content)),
        mkdir: ({ sandbox }, path) => sandbox.files.mkdir(path),
        readdir: async ({ sandbox }, path) =>
          (await gathered(sandbox.files.list(path))).map(({ name, type, size_bytes, modified_at }) => ({
            name,
            type: type === "directory" ? "directory" : "file",
            size: size_bytes,
            modified: new Date(modified_at),
          })),
        exists: async ({ sandbox }, path) => (await orNull(sandbox.files.stat(path))) !== null,
        remove: async ({ sandbox }, path) => void (await sandbox.files.delete(path, { recursive: true })),
      },
    },
    snapshot: {
      create: async (config, sandboxId, options = {}) => {
        const { sandbox } = heldOf(serviceOf(config), sandboxId);
        return sandbox.snapshot(options.name === undefined ? {} : { name: options.name });
      },
      list: async (config, options = {}) => {
        if (options.sandboxId === undefined)
          throw new RoomdError("Snapshots belong to a sandbox: name it as sandboxId.");
        const found = [];
        const service = serviceOf(config);
        for await (const each of service.client.items("snapshot_list", { room_id: options.sandboxId }))
          found.push(each);
        return found;
      },
      delete: async (config, snapshotId) => {
        const { client } = serviceOf(config);
        try {
          const { room_id } = await client.call("locate", { id: snapshotId });
          if (room_id !== null) await client.call("snapshot_delete", { room_id, snapshot_id: snapshotId });
        } catch (error) {
          if (!(error instanceof NotFoundError)) throw error;
        }
      },
    },
  },
});

/** Clients by configuration, reused so that their connections stay open. */
const services = new WeakMap<RoomdConfig, Roomd>();

function serviceOf(config: RoomdConfig): Roomd {
  const known = services.get(config) ?? new Roomd(config);
  services.set(config, known);
  return known;
}

function heldOf(service: Roomd, roomId: string): HeldSandbox {
  return { roomd: service, sandbox: service.rooms.open(roomId).sandbox(AGENT) };
}

interface ComputeOptions {
  templateId?: string;
  snapshotId?: string;
  envs?: Record<string, string>;
  timeout?: number;
  signal?: AbortSignal;
}

function wantedOf(
  config: RoomdConfig,
  { templateId, snapshotId, envs, timeout, signal }: ComputeOptions,
): SandboxOptions {
  const template = templateId ?? config.template;
  return {
    ...(template === undefined ? {} : { template }),
    ...(snapshotId === undefined ? {} : { snapshot: snapshotId }),
    ...(config.memoryMib === undefined ? {} : { memoryMib: config.memoryMib }),
    ...(config.vcpus === undefined ? {} : { vcpus: config.vcpus }),
    ...(config.egress === undefined ? {} : { egress: config.egress }),
    ...(envs === undefined ? {} : { env: envs }),
    ...(timeout === undefined ? {} : { maxDurationSeconds: Math.max(1, Math.ceil(timeout / 1000)) }),
    ...(signal === undefined ? {} : { signal }),
  };
}

function labelsOf(metadata: Record<string, unknown> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, String(value)]));
}

async function run({ sandbox }: HeldSandbox, command: string, options: RunCommandOptions): Promise<CommandResult> {
  const { cwd, env, timeout, background, onStdout, onStderr } = options;
  const commandOptions: CommandOptions = {
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(timeout === undefined ? {} : { timeoutMs: timeout }),
    ...(onStdout === undefined ? {} : { onStdout }),
    ...(onStderr === undefined ? {} : { onStderr }),
  };
  if (background) {
    // Background commands are servers that run long. They get no input.
    await sandbox.start(command, { ...commandOptions, stdin: "" });
    return { stdout: "", stderr: "", exitCode: 0, durationMs: 0 };
  }
  const done = await sandbox.exec(command, commandOptions);
  return { stdout: done.stdout, stderr: done.stderr, exitCode: exitCodeOf(done), durationMs: done.durationMs };
}
