/** Composition of sandboxes, their output and the access to them: terminals, screens, ports and SSH. */
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import { ticketMark } from "../core/call/tickets.ts";
import type { Queries } from "../db/client.ts";
import { makeEgress } from "../domain/egress/index.ts";
import type { Meter } from "../domain/orgs/index.ts";
import { makePorts, makeShownPorts, PORT_RULE, type PortMaker, Traffic } from "../domain/ports/index.ts";
import { liveRoomUids } from "../domain/rooms/index.ts";
import { DEFAULT_TEMPLATE, isKept, makeSandboxes } from "../domain/sandboxes/index.ts";
import { makeScreens } from "../domain/screen/index.ts";
import { makeSsh } from "../domain/ssh/index.ts";
import { isEverSaved, Processors } from "../domain/templates/processors.ts";
import { memoryAhead, RecentUse, type Use } from "../domain/templates/recent-use.ts";
import { usableSnapshot } from "../domain/templates/registry.ts";
import { makeTerminals } from "../domain/terminals/index.ts";
import { isMakerGood } from "../domain/users/index.ts";
import type { GuestCalls } from "../edge/guest/guest-calls.ts";
import { type PoolTarget, WarmPool } from "../host/guest/pool.ts";
import type { Addresses } from "./addresses.ts";
import type { Base } from "./base.ts";
import type { Drives } from "./drives.ts";
import { makeFilmGuests } from "./film-guests.ts";
import type { Orgs } from "./orgs.ts";
import type { AllRates } from "./rate-limits.ts";
import { systemActor } from "./records.ts";

interface SandboxParts extends Pick<Orgs, "orgs" | "hold" | "quota" | "credits" | "meter">, Pick<Drives, "drive"> {
  /** Called when an agent's sandbox is new or changes its state. */
  agentChanged(roomUid: RoomUid, agentId: string): void;
  /** A command has started or ended. */
  commandsChanged(roomUid: RoomUid): void;
  /** Disk use of an organization's drives and snapshots. */
  driveUsed(orgId: OrgId): Promise<number>;
  portsDomain: string | null;
  addresses: Addresses;
  guestCalls: GuestCalls;
  rates: AllRates;
}

export function composeSandboxes(base: Base, parts: SandboxParts) {
  const { config, log, paths, disk, database, inspected, templates, finder, record } = base;
  const { orgs, hold, quota, credits, meter, drive, addresses } = parts;
  const used = new RecentUse();
  const pool = new WarmPool({
    paths,
    log,
    host: () => inspected.guestHost(),
  });
  const processors = new Processors({
    paths,
    templates,
    log,
    qemu_img: inspected.programs.qemu_img,
    qemuVersion: inspected.findings.qemu_version,
    host: () => inspected.guestHost(),
    spareBytes: () => disk.spare_bytes,
    saved: () => pool.refill(),
  });
  const traffic = new Traffic();
  const urls = () => ({ base_url: addresses.url, domain: parts.portsDomain });
  const egress = composeEgress(base, meter);
  const unasked = { actor: systemActor("supervisor"), source: "reconciler" } as const;
  const sandboxes = makeSandboxes({
    pool,
    crashed: base.crashed,
    database,
    directory: base.directory,
    log,
    meter,
    traces: base.tracing.traces,
    paths,
    templates,
    templateGroups: base.templateGroups,
    templateUsed: (use) => isEverSaved(use.vcpu_count) && used.note(use),
    host: () => inspected.guestHost(),
    findRoom: finder.find,
    currentRoom: finder.current,
    quota,
    credits,
    driveUsed: parts.driveUsed,
    limits: inspected.limits,
    memoryOvercommitPercent: config["limits.memory_overcommit"],
    otherMemoryMib: () => processors.memoryMib,
    startLimitMs: config["limits.sandbox_start"] * 1000,
    egressDefault: config["egress.default"],
    egress,
    roomCalls: (sandbox) => parts.guestCalls.of(sandbox),
    driveMode: (roomUid) => drive.modeOf(roomUid),
    here: () => ({
      qemu_version: inspected.findings.qemu_version,
      acceleration: inspected.findings.acceleration.acceleration,
    }),
    portsOf: makeShownPorts(database.queries, { urls, traffic }),
    saveOutput: (room, path, streams) => drive.saveStreams(room, path, streams),
    onEvent: (event, { org_id, room_uid, agent_id, sandbox_id }, details, outcome = "error") =>
      record({ ...unasked, event, outcome, org_id, room_uid, agent_id, sandbox_id, details }),
    onState: ({ room_uid, agent_id }) => parts.agentChanged(room_uid, agent_id),
    onCommands: parts.commandsChanged,
    onSwept: (sandbox_id) =>
      record({
        ...unasked,
        event: "sandbox.swept",
        outcome: "success",
        org_id: null,
        sandbox_id,
        details: {},
      }),
  });
  const { access, hasMemoryFor, whenNobodyStarts } = sandboxes;
  pool.serve({
    wanted: () => worthLaunching(base, used, (use) => processors.want(use.template_id, use.vcpu_count, hasMemoryFor)),
    whenNobodyStarts,
    giveWay: () => processors.giveWay(),
    hasMemoryFor,
  });
  const mark = base.cluster && ticketMark(base.hostId);
  const terminals = makeTerminals({
    ticketMark: mark,
    database,
    log,
    sandboxes: access,
    isCurrentKey: orgs.isCurrent,
    holdKey: orgs.holdKey,
    detachedLifeMs: config["terminal.detached_life"] * 1000,
  });
  const screens = makeScreens({
    ticketMark: mark,
    database,
    log,
    paths,
    roomsOf: (orgId) => liveRoomUids(database.queries, orgId),
    hasSpace: () => disk.hasSpace,
    withFilmGuest: makeFilmGuests(base, (memoryMib) => hasMemoryFor([memoryMib])),
    sandboxes: access,
    isCurrentKey: orgs.isCurrent,
    hold,
  });
  const ports = makePorts({
    database,
    log,
    sandboxes: access,
    keyFile: paths.port_key,
    isMakerGood: isPortMakerGood,
    holdMaker: (maker, cut) =>
      orgs.holds.hold(`maker ${maker.key_id}`, () => isPortMakerGood(database.queries, maker), cut),
    rate: parts.rates.ports,
    ...{ urls, traffic },
  });
  const ssh = makeSsh({ database, log, sandboxes: access, sit: terminals.sit, orgs, gateway: () => addresses.gateway });
  return { sandboxes, pool, processors, egress, terminals, screens, ports, ssh };
}

const isPortMakerGood = (queries: Queries, { org_id, key_id: id }: PortMaker): boolean =>
  isMakerGood(queries, { org_id, type: "key", id }, PORT_RULE);

const isUsual = ({ template_id, vcpu_count }: Use) => template_id === DEFAULT_TEMPLATE && vcpu_count === 1;

/**
 * Machines of `default` always; if memory remains, one of every other template used recently, since it may be large, and of each as many as
 * recently ran concurrently, with the smallest memory among those. Snapshots missing for a processor count are saved.
 */
async function worthLaunching(
  { config, templates }: Base,
  used: RecentUse,
  save: (use: Use) => void,
): Promise<PoolTarget[]> {
  const size = config["pool.size"];
  const lately = used.list();
  const usual = lately.find(isUsual) ?? {
    template_id: DEFAULT_TEMPLATE,
    vcpu_count: 1,
    together: 0,
    least_memory_mib: 0,
  };
  const others = lately.filter((use) => !isUsual(use));
  const targets: PoolTarget[] = [];
  const bursts: PoolTarget[] = [];
  for (const use of size === 0 ? others.filter(({ vcpu_count }) => vcpu_count > 1) : [usual, ...others]) {
    const { template_id, vcpu_count, together, least_memory_mib } = use;
    const image = await usableSnapshot(templates, template_id, vcpu_count);
    if (!image) save(use);
    if (!image || size === 0) continue;
    const memory_mib = memoryAhead(least_memory_mib, image.hardware);
    targets.push({ image, memory_mib, size: use === usual ? size : 1, isExtra: use !== usual });
    bursts.push({ image, memory_mib, size: Math.min(together, config["pool.most"]), isExtra: true });
  }
  return [...targets, ...bursts];
}

function composeEgress({ config, log, database, record }: Base, meter: Meter) {
  return makeEgress({
    database,
    log,
    meter,
    isKept,
    privateRanges: config["egress.private_ranges"],
    hostsFile: config["egress.hosts_file"],
    mibPerSecond: config["egress.mib_per_second"],
    onDenied: ({ sandbox_id, org_id, room_uid, room_id, agent_id }, denial) => {
      const actor = { type: "agent", id: agent_id, name: agent_id };
      const details = { ...denial };
      const about = { org_id, room_id, room_uid, agent_id, sandbox_id, details };
      record({ event: "egress.denied", outcome: "denied", ...about, actor, source: "vsock" });
    },
  });
}
