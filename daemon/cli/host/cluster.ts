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
    summary: "several hosts that are one service (run on a host)",
    notes: [
      "cluster.url in the configuration names the PostgreSQL database by which they are one; docs/cluster.md has whole set-ups.",
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
    summary: "make this host the first of several; what it has is kept",
    notes: [
      "The service must be stopped. It is started again afterwards, and further hosts join by `roomd cluster token`.",
    ],
    examples: ["systemctl stop roomd && roomd cluster init && systemctl start roomd"],
  };
  return withConfigOption(command("init", about)).action(async (options: Options) => {
    const made = await withMemberships(options, { stopped: true }, (memberships) => memberships.init());
    await showValue(made, options, fieldLines);
    if (!options.json) await say("Start the service; `roomd cluster token` makes what another host joins with.");
  });
}

function token(): Command {
  const about = {
    summary: "print what another host joins with, once and within an hour",
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
    summary: "make this host one of several, by a token that one of them has made",
    notes: [
      "The service must be stopped, and have no organizations of its own. Templates are built, or copied, on each host.",
    ],
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
    summary: "confirm that the backup which was restored here is this host from now on",
    notes: [
      "The service must be stopped, here and where the data were backed up. Until then it does not start: two daemons with the same data would both answer for its rooms.",
    ],
    examples: ["roomd restore /var/backups/roomd.tar && roomd cluster rejoin && systemctl start roomd"],
  };
  return withConfigOption(command("rejoin", about))
    .option("--force", "also while a daemon runs with the data that were backed up; it is a member no more then")
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
    summary: "list the hosts, and what to do about them",
    notes: ["Asks the service, as it is known: on a host of it, or with an administrator's key."],
    examples: ["roomd cluster list", "roomd cluster list --json"],
  };
  return command("list", about).action(async (options: JsonOption) => {
    await show(await call(hostList, {}), options, (found) => hostLines(found, Date.now(), process.stdout.columns));
  });
}

function drain(): Command {
  const about = {
    summary: "place no more rooms on a host; those that it has go on",
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
    summary: "have this host keep a room that is on two hosts in the same epoch",
    notes: [
      "Neither host answers for such a room. Run it on the host whose copy is to stay: the other host retires its copy, and keeps its drive for drive.retention.",
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
    summary: "take a host out of the service for good",
    notes: [
      "What is in its rooms is lost to the service. A host that still runs changes nothing that hosts share from then on.",
      "A room that was just moving there, and has not come, goes on where it was: power the host off first.",
    ],
    examples: ["roomd cluster remove host-2", "roomd cluster remove host-2 --force"],
  };
  return withConfigOption(command("remove <host>", about))
    .option("--force", "also with rooms on it, whose names are free then")
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
  return await withProgress("asking the directory of hosts", async () => {
    // Loaded only here: clients need none of it.
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
