/**
 * Model of the move of one room between two hosts with a shared directory: the steps of daemon/domain/rooms/move and daemon/cluster/self-sync.ts, each
 * as small as another host or a crash can interrupt them, and the faults. A request is answered at any later moment, or never.
 */
import { type Directory, HOSTS, type HostId, type Row, RULES, type Rules } from "./move-rules.ts";
import {
  answers,
  type File,
  followed,
  type Host,
  other,
  placed,
  round,
  type Settling,
  type State,
  type Step,
  type Taking,
  withDirectory,
  withHost,
} from "./move-state.ts";

export function stepsFrom(state: State, rules: Rules = RULES): Step[] {
  const steps: Step[] = [];
  for (const host of HOSTS) {
    const add = (name: string, to: State | null, isChoice = false) => {
      if (to) steps.push({ name, host, isChoice, to });
    };
    const { isUp } = state.hosts[host];
    addFaults(state, host, rules, add);
    if (!isUp) continue;
    add("follows the directory", followed(state, host, rules));
    add(
      "says its rooms",
      round(state, host, rules, (caughtUp) => saidRooms(caughtUp, host, rules)),
    );
    addLeaving(state, host, rules, add);
    addSettling(state, host, rules, add);
    addTaking(state, host, rules, add);
  }
  return steps;
}

type Add = (name: string, to: State | null, isChoice?: boolean) => void;

function addFaults(state: State, host: HostId, rules: Rules, add: Add): void {
  const { hosts, directory, before } = state;
  const { isUp, row } = hosts[host];
  if (!isUp) add("starts", withHost(state, host, { isUp: true, hasFollowed: false }));
  else if (state.crashes > 0) {
    const none = { isUp: false, hasFollowed: false, leaving: null, settling: null, taking: null, reading: null };
    const { reading } = hosts[other(host)];
    const closed = { reading: reading && { ...reading, isOpen: false } };
    const rest = withHost({ ...state, crashes: state.crashes - 1 }, other(host), closed);
    add("crashes", withHost(rest, host, none), true);
  }
  if (host === "host-1" && before !== null && state.forgets > 0)
    add("the directory is set back", { ...state, directory: before, before: null, forgets: state.forgets - 1 }, true);
  if (state.removals > 0 && directory.gone === null) {
    const spent = { ...state, removals: state.removals - 1 };
    for (const by of ["operator", other(host), host] as const)
      add(`is removed by ${by}`, removed(spent, host, rules.freed(by, host)), true);
  }
  if (row && answers(state, host, rules, true)) {
    // A removed host that has not read its removal yet: its acknowledged writes are lost with it.
    if (directory.gone !== host) add("acknowledges a write", written(state, host), true);
    const endedRow: Row = { state: "destroyed", epoch: row.epoch, move: null };
    const hasEnded = directory.gone !== host || state.hasEnded;
    if (!hosts[host].leaving) add("ends the room", withHost({ ...state, hasEnded }, host, { row: endedRow }), true);
  }
  if (!isUp || row?.state !== "active") return;
  const move = row.move === null ? rules.giveUp(row.epoch, hosts[host].copy.owner, host) : null;
  if (move) add("gives the room up", withHost(state, host, { row: { ...row, move } }));
}

function removed(state: State, host: HostId, freedBy: Directory["freedBy"]): State {
  const { owner } = state.directory;
  const contestedBy = owner?.contestedBy === host ? null : (owner?.contestedBy ?? null);
  const change = owner?.host === host ? { owner: null, freedBy } : { owner: owner && { ...owner, contestedBy } };
  return withDirectory(state, { ...change, gone: host });
}

function written(state: State, host: HostId): State {
  const stale = (file: File | null) => file && { ...file, isFresh: false };
  let next = state;
  for (const each of HOSTS) {
    const { reading, arriving } = state.hosts[each];
    next = withHost(next, each, { isFresh: each === host, reading: stale(reading), arriving: stale(arriving) });
  }
  return next;
}

function saidRooms(state: State, host: HostId, rules: Rules): State {
  const { row, reading, arriving } = state.hosts[host];
  const live = row?.state === "active" ? { epoch: row.epoch, isClaiming: row.move?.claiming === true } : null;
  const owner = rules.say(live, state.directory.owner, host, reading !== null || arriving !== null);
  return owner === undefined ? state : placed(state, owner, host);
}

/** sendRoom, and the reception of the file on the other host. */
function addLeaving(state: State, host: HostId, rules: Rules, add: Add): void {
  const { row, leaving, settling, copy } = state.hosts[host];
  const to = other(host);
  const goal = state.hosts[to];
  const go = (change: Partial<Host>, from = state) => withHost(from, host, change);
  const mayBegin = row?.state === "active" && row.move === null && !leaving && !settling;
  if (mayBegin && state.moves > 0 && copy.gone !== to && rules.mayLeave(row.epoch, copy.owner, host)) {
    const started = { next: 0, epoch: copy.owner?.epoch ?? 0, said: null };
    add("begins to move the room", go({ leaving: started }, { ...state, moves: state.moves - 1 }), true);
  }
  if (!leaving || row?.state !== "active") return;
  const { next, epoch, said } = leaving;
  const step = rules.order[next];
  const onward = { ...leaving, next: next + 1 };
  if (step === "send" && goal.isUp) {
    const read = goal.taking || goal.reading ? null : round(state, to, rules);
    const file = { epoch, isFresh: state.hosts[host].isFresh, isOpen: true };
    if (read && rules.mayCome(read.directory.owner, host, epoch, goal.row?.state === "active"))
      add("sends the file", withHost(read, to, { arriving: null, reading: file }));
  }
  if (step === "note")
    add("notes the move", go({ leaving: onward, row: { ...row, move: { to, epoch, claiming: false } } }));
  if (step === "intend" && row.move)
    add("notes the claim", go({ leaving: onward, row: { ...row, move: { ...row.move, claiming: true } } }));
  if (step === "claim") {
    const claimed = round(state, host, rules, (caughtUp) => {
      const { owner, gone } = caughtUp.directory;
      const moved = rules.claim(owner, host, epoch, to, gone === to);
      return moved ? placed(caughtUp, moved, host) : caughtUp;
    });
    const isClaimed = claimed && claimed.directory.owner?.host === to;
    if (isClaimed) add("claims the room", withHost(claimed, host, { leaving: onward }));
    if (claimed) add("claims, and gets no answer", withHost(claimed, host, { leaving: null, settling: begin(true) }));
  }
  if (step === "ask") {
    if (said === null) addAsk(state, host, add);
    else if (rules.isThere(said, epoch))
      add("learns that the other host has it", go({ leaving: { ...onward, said: null } }));
  }
  if (step === "retire")
    add("lets the room go", go({ leaving: null, row: { ...row, state: "destroyed", move: null } }));
  const isCertain = row.move?.claiming === true;
  const closedState = goal.reading ? withHost(state, to, { reading: { ...goal.reading, isOpen: false } }) : state;
  add("abandons the move", go({ leaving: null, settling: row.move ? begin(isCertain) : null }, closedState));
}

const begin = (isCertain: boolean): Settling => ({ at: "asking", isCertain, said: null, decision: null });

/** Has the other host settle; the answer comes when that is done. */
function addAsk(state: State, host: HostId, add: Add): void {
  const goal = state.hosts[other(host)];
  if (!goal.isUp || goal.taking || goal.reading) return;
  const isDone = goal.arriving === null;
  if (isDone) add("is answered", heard(state, host));
  else add("asks the other host", withHost(state, other(host), { taking: { at: "first", isAsked: true } }));
}

/** The answer of the other host: the epoch of its row. */
function heard(state: State, host: HostId): State {
  const { leaving, settling } = state.hosts[host];
  const said = state.hosts[other(host)].row?.epoch ?? 0;
  if (leaving) return withHost(state, host, { leaving: { ...leaving, said } });
  return settling?.at === "asking" ? withHost(state, host, { settling: { ...settling, at: "owner", said } }) : state;
}

/** settleMove. */
function addSettling(state: State, host: HostId, rules: Rules, add: Add): void {
  const { row, leaving, settling, copy } = state.hosts[host];
  const go = (change: Partial<Host>, from = state) => withHost(from, host, change);
  if (row?.state !== "active" || !row.move) {
    if (settling) add("has nothing to settle", go({ settling: null }));
    return;
  }
  if (!settling) {
    if (!leaving) add("begins to settle", go({ settling: begin(true) }));
    return;
  }
  const { said, isCertain, decision } = settling;
  const retired: Partial<Host> = { settling: null, row: { ...row, state: "destroyed", move: null } };
  if (settling.at === "asking") {
    const canAsk = rules.asks(row.move) && copy.gone !== other(host);
    if (canAsk) addAsk(state, host, add);
    else add("asks no other host", go({ settling: { ...settling, at: "owner" } }));
    add("gives up settling", go({ settling: null }));
  } else if (settling.at === "owner") {
    const read = isCertain ? round(state, host, rules) : state;
    if (said !== null && rules.isThere(said, row.move.epoch)) add("lets the room go", go(retired));
    else if (!read) add("gives up settling", go({ settling: null }));
    else {
      const owner = isCertain ? read.directory.owner : copy.owner;
      const known = { move: row.move, rowEpoch: row.epoch, host, said, owner, freedBy: read.directory.freedBy };
      add("decides", go({ settling: { ...settling, at: "decided", decision: rules.settle(known) } }, read));
    }
  } else if (decision?.isHere) {
    add("keeps the room", go({ settling: null, row: { ...row, move: null, epoch: decision.epoch } }));
  } else add("lets the room go", go(retired));
}

/** The reception of a file, and Arrivals.settle: requested by the other host, or started by this one at any moment. */
function addTaking(state: State, host: HostId, rules: Rules, add: Add): void {
  const { arriving, reading, taking } = state.hosts[host];
  const go = (change: Partial<Host>, from = state) => withHost(from, host, change);
  if (reading) {
    add("throws away half a file", go({ reading: null }));
    const { leaving } = state.hosts[other(host)];
    const read = go({ reading: null, arriving: reading });
    add("has the file", read);
    if (reading.isOpen && leaving)
      add(
        "has the file, and answers",
        withHost(read, other(host), { leaving: { ...leaving, next: leaving.next + 1 } }),
      );
  } else if (arriving && !taking) add("settles what came", go({ taking: { at: "first", isAsked: false } }));
  else if (arriving && taking) addTakingUp(state, host, { arriving, taking }, rules, add);
}

function addTakingUp(
  state: State,
  host: HostId,
  { arriving, taking }: { arriving: File; taking: Taking },
  rules: Rules,
  add: Add,
): void {
  const { row } = state.hosts[host];
  const { epoch, isFresh } = arriving;
  const go = (change: Partial<Host>, from = state) => withHost(from, host, change);
  const addDone = (from: State) => {
    add("is done", from);
    if (taking.isAsked) add("is done, and answers", heard(from, other(host)));
  };
  const done = { taking: null, arriving: null };
  if (row && (taking.at === "clean" || rules.hasCome(row, epoch))) {
    add("cannot erase what came", go({ taking: null }), true);
    addDone(go(done));
    return;
  }
  if (taking.at === "place") {
    const taken: Row = { state: "active", epoch: epoch + 1, move: null };
    add("takes the room up", go({ row: taken, isFresh, taking: { ...taking, at: "clean" } }));
    return;
  }
  const refuse = (caughtUp: State) => placed(caughtUp, rules.refuse(caughtUp.directory.owner, epoch), host);
  const read = round(state, host, rules, taking.at === "refuse" ? refuse : undefined);
  if (!read) {
    add("gives up settling what came", go({ taking: null }));
    return;
  }
  const isOurs = taking.at !== "refuse" && rules.isOurs(read.directory.owner, host, epoch);
  const next = isOurs ? "place" : taking.at === "first" ? "refuse" : taking.at === "refuse" ? "again" : null;
  if (next) add(`settles: ${next}`, go({ taking: { ...taking, at: next } }, read));
  else addDone(go(done, read));
}
