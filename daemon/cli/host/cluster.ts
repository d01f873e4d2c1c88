/** `roomd cluster`: hosts that form one service through a PostgreSQL database. */
import type { Command } from "commander";
import { hostList } from "../../../shared/api/hosts.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import type { openMemberships } from "../../compose/memberships.ts";
import { makeLog } from "../../core/log.ts";
import { evacuateCommand } from "../commands/room/move.ts";
import { call } from "../kit/client.ts";
import { command, commandGroup } from "../kit/command.ts";
import { fieldLines, type JsonOption, say, show, showValue } from "../kit/output.ts";
import { withProgress } from "../kit/progress.ts";
import { hostLines } from "./host-lines.ts";
import { type ConfigOption, ownConfiguration, withConfigOption } from "./operator.ts";

type Options = JsonOption & ConfigOption;
type Memberships = Awaited<ReturnType<typeof openMemberships>>;

export function clusterCommand(): Command {
  return commandGroup("cluster", {
    summary: "cluster of hosts that form one service (run on a host)",
    notes: [
      "cluster.url in the configuration names the PostgreSQL database that they share; docs/cluster.md has complete set-ups.",
    ],
    examples: ["roomd cluster init", "roomd cluster token", "roomd cluster join join-…", "roomd cluster list"],
  })
    .addCommand(init())
    .addCommand(token())
    .addCommand(join())
    .addCommand(rejoin())
    .addCommand(list())
    .addCommand(drain())
    .addCommand(evacuateCommand())
    .addCommand(keep())
    .addCommand(remove());
}

function init(): Command {
  const about = {
    summary: "make this host the first of a cluster; its data is kept",
    notes: ["The service must be stopped. Start it afterwards; further hosts join with `roomd cluster token`."],
    examples: ["systemctl stop roomd && roomd cluster init && systemctl start roomd"],
  };
  return withConfigOption(command("init", about)).action(async (options: Options) => {
    const made = await withMemberships(options, { stopped: true }, (memberships) => memberships.init());
    await showValue(made, options, fieldLines);
    if (!options.json)
      await say("Start the service; `roomd cluster token` prints a token with which another host joins.");
  });
}

function token(): Command {
  const about = {
    summary: "print a single-use token with which another host joins within an hour",
    examples: ["roomd cluster token"],
  };
  return withConfigOption(command("token", about)).action(async (options: Options) => {
    const made = await withMemberships(options, {}, (memberships) => memberships.invite());
    await showValue(made, options, ({ token: made }) => [made]);
    if (!options.json) await say("On the other host, with the same cluster.url: roomd cluster join TOKEN");
  });
}

function join(): Command {
  const about = {
    summary: "join this host to a cluster, with a token from one of its hosts",
    notes: ["The service must be stopped and have no organizations. Templates are built or copied on each host."],
    examples: ["systemctl stop roomd && roomd cluster join join-… && systemctl start roomd"],
  };
  return withConfigOption(command("join <token>", about)).action(async (given: string, options: Options) => {
    const made = await withMemberships(options, { stopped: true }, (memberships) => memberships.join(given));
    await showValue(made, options, fieldLines);
    if (!options.json) await say("Start the service.");
  });
}

function rejoin(): Command {
  const about = {
    summary: "confirm that this host replaces the host of the restored backup",
    notes: [
      "The service must be stopped, on this host and on the host of the backup. Until it has rejoined it does not start: two daemons with the same data would both serve its rooms.",
    ],
    examples: ["roomd restore /var/backups/roomd.tar && roomd cluster rejoin && systemctl start roomd"],
  };
  return withConfigOption(command("rejoin", about))
    .option("--force", "even while a daemon runs with the original data; it ceases to be a member")
    .action(async (options: Options & { force?: boolean }) => {
      const made = await withMemberships(options, { stopped: true }, (memberships) =>
        memberships.rejoin({ force: options.force === true }),
      );
      await showValue(made, options, fieldLines);
      if (!options.json) await say("Start the service.");
    });
}

function list(): Command {
  const about = {
    summary: "list the hosts, with remedies",
    notes: ["Queries the service: on one of its hosts, or with an administrator's key."],
    examples: ["roomd cluster list", "roomd cluster list --json"],
  };
  return command("list", about).action(async (options: JsonOption) => {
    await show(await call(hostList, {}), options, (found) => hostLines(found, Date.now(), process.stdout.columns));
  });
}

function drain(): Command {
  const about = {
    summary: "place no more rooms on a host; its rooms keep running",
    examples: ["roomd cluster drain host-2", "roomd cluster drain host-2 --undo"],
  };
  return withConfigOption(command("drain <host>", about))
    .option("--undo", "place rooms on it again")
    .action(async (hostId: string, options: Options & { undo?: boolean }) => {
      const set = await withMemberships(options, {}, (memberships) => memberships.setDraining(hostId, !options.undo));
      await showValue(set, options, fieldLines);
    });
}

function keep(): Command {
  const about = {
    summary: "keep this host's copy of a room that two hosts own in the same epoch",
    notes: [
      "Neither host serves such a room. Run this command on the host with the copy to keep: the other host retires its copy, and keeps its drive for drive.retention.",
    ],
    examples: ["roomd cluster keep rom_01JZ0000000000000000000000"],
  };
  return withConfigOption(command("keep <room_uid>", about)).action(async (roomUid: string, options: Options) => {
    const kept = await withMemberships(options, {}, (memberships) => memberships.keep(roomUid as RoomUid));
    await showValue(kept, options, fieldLines);
  });
}

function remove(): Command {
  const about = {
    summary: "remove a host from the service permanently",
    notes: [
      "The contents of its rooms are lost to the service. If the host still runs, it can no longer change shared data.",
      "A room with an unfinished move to this host continues on its source host: power the host off first.",
    ],
    examples: ["roomd cluster remove host-2", "roomd cluster remove host-2 --force"],
  };
  return withConfigOption(command("remove <host>", about))
    .option("--force", "even with rooms on it, which frees their names")
    .action(async (hostId: string, options: Options & { force?: boolean }) => {
      const removed = await withMemberships(options, {}, (memberships) =>
        memberships.remove(hostId, { force: options.force === true }),
      );
      await showValue(removed, options, ({ host_id, rooms_lost }) => [
        `${host_id} is removed.`,
        ...rooms_lost.map(({ room_id, org_id }) => `lost: ${room_id} of ${org_id}`),
      ]);
    });
}

/** Opens this host's cluster membership, runs `work`, closes it again. `stopped`: no daemon may run during it. */
async function withMemberships<T>(
  options: Options,
  { stopped = false }: { stopped?: boolean },
  work: (memberships: Memberships) => T | Promise<T>,
): Promise<T> {
  return await withProgress("querying the directory of hosts", async () => {
    // Loaded lazily: client commands do not need these modules.
    const { openMemberships: open, requireStopped } = await import("../../compose/memberships.ts");
    const configuration = ownConfiguration(options);
    const release = stopped ? requireStopped(configuration.paths) : () => {};
    try {
      const memberships = await open({ ...configuration, log: makeLog("warn") });
      try {
        return await work(memberships);
      } finally {
        await memberships.close();
      }
    } finally {
      release();
    }
  });
}
