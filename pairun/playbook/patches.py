"""Applies the operations of a higher layer to a playbook: patch, disable, before, after, append."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pairun.errors import Place, Problems, did_you_mean
from pairun.module import Phase
from pairun.plan import USER_COMMAND
from pairun.playbook.document.reading import Node
from pairun.playbook.drafts import Draft, GroupDraft, TaskDraft, draft_task, merged
from pairun.playbook.keywords import EXPORT, OPERATIONS, keywords_of
from pairun.playbook.policy import Policy


class Patcher:
    """Applies the operations of one layer to one phase.

    Args:
        draft: the phase.
        layer: the origin of inserted tasks.
        policy: what the layer may change; None allows everything.
        elsewhere: ids and plugins that are not in this phase, each with a hint.
    """

    def __init__(
        self,
        draft: Draft,
        modules: Mapping[str, object],
        layer: str,
        policy: Policy | None,
        problems: Problems,
        elsewhere: Mapping[str, str],
    ) -> None:
        self._draft = draft
        self._modules = modules
        self._layer = layer
        self._policy = policy
        self._problems = problems
        self._elsewhere = elsewhere
        self._tasks = draft.by_id()
        self._step_of = {
            id(task): step
            for step in draft.steps
            for task in (step.tasks if isinstance(step, GroupDraft) else (step,))
        }
        self._inserted: dict[tuple[str, int], list[TaskDraft]] = {}

    def apply(self, operations: Node) -> None:
        """Apply a list of operations: patches first, then the order."""
        inserts = []
        for op in operations.elements():
            kinds = [k for k in OPERATIONS if k in dict(op.items())]
            if len(kinds) != 1:
                self._problems.error(
                    "PR404",
                    "an entry has exactly one of patch, disable, before, after, append"
                    if kinds
                    else "an entry must say what it does",
                    op.place,
                    "write patch, disable, before, after or append" if not kinds else None,
                )
            elif kinds[0] == "patch":
                self._patch(op)
            elif kinds[0] == "disable":
                self._disable(op)
            else:
                inserts.append((kinds[0], op))
        for kind, op in inserts:
            self._insert(kind, op)
        self._draft.steps = list(self._ordered())

    def _ordered(self) -> Iterator[TaskDraft | GroupDraft]:
        """The steps with the inserted tasks, which may be anchors themselves."""
        todo: list[tuple[TaskDraft | GroupDraft, bool]]
        todo = [(step, False) for step in reversed(self._draft.steps)]
        while todo:
            step, is_next = todo.pop()
            if is_next:
                yield step
                continue
            after = self._inserted.get(("after", id(step)), ())
            before = self._inserted.get(("before", id(step)), ())
            todo += ((task, False) for task in reversed(after))
            todo.append((step, True))
            todo += ((task, False) for task in reversed(before))

    def _target(self, node: Node) -> TaskDraft | None:
        id_ = str(node.value)
        task = self._tasks.get(id_)
        if task is None and {id_, re.sub(r"_\d+$", "", id_)} & self._draft.left_out:
            return None  # the plugin with this task is already reported
        # The engine patches the default playbook; an operator's own may lack the task.
        if task is None and self._layer != "engine":
            message = f"there is no task '{id_}' in {self._draft.phase}"
            hint = self._elsewhere.get(id_) or did_you_mean(id_, self._tasks)
            self._problems.error("PR401", message, node.place, hint)
        return task

    def _locked(self, task: TaskDraft, place: Place) -> bool:
        # A lock limits who configures pairun; the engine's layer is pairun's own and cannot differ.
        lock = None if self._layer == "engine" else task.node.get("locked")
        if lock is None or lock.value is not True:
            return False
        self._problems.error(
            "PR403", f"the task '{task.id}' is locked", place, also=[("locked here", lock.place)]
        )
        return True

    def _patch(self, op: Node) -> None:
        task = self._target(op.value["patch"])
        if task is None or self._locked(task, op.value["patch"].place):
            return
        changes = {k: n for k, n in op.items() if k not in ("patch", "args")}
        for name in [n for n in changes if n in self._modules]:
            node = changes.pop(name)
            message = f"a patch changes the module's arguments under 'args', not under '{name}'"
            self._problems.error("PR404", message, node.head, "args: {…}")
        for name in [n for n in ("id", "event") if n in changes]:
            place = changes.pop(name).place
            self._problems.error("PR404", f"a patch cannot change '{name}'", place)
        args = op.get("args")
        if args is not None and isinstance(args.value, dict):
            changes[task.module] = args
        allowed = {k: n for k, n in changes.items() if self._permitted(task, k, n)}
        value = {
            **task.node.value,
            **{k: merged(task.node.value.get(k), n) for k, n in allowed.items()},
        }
        task.node = Node(value, task.node.place, task.node.key, task.node.overrides)

    def _permitted(self, task: TaskDraft, keyword: str, node: Node) -> bool:
        if self._policy is None:
            return True
        fine = True
        for path, leaf in _leaves("args" if keyword == task.module else keyword, node):
            permission = self._policy.may_patch(task.id, task.module, path)
            if path == "environment" and task.module == USER_COMMAND:
                permission = permission._replace(words=f"set variables with {EXPORT}")
            what = f"change '{path}' of the task '{task.id}'"
            fine = permission.granted(self._problems, what, leaf.head) and fine
        if fine and keyword == "on_exit":
            fine = self._handlers_permitted(node)
        return fine

    def _handlers_permitted(self, handlers: Node) -> bool:
        """Check an exit handler as an insertion of its module."""
        answers = [
            self._may_insert(name, handler)
            for handler in handlers.elements()
            for name, _ in handler.items()
            if name in self._modules and name not in keywords_of("handler")
        ]
        return all(answers)

    def _may_insert(self, module: str, node: Node) -> bool:
        if self._policy is None:
            return True
        permission = self._policy.may_insert(self._draft.phase, module)
        what = f"insert '{module}' into {self._draft.phase}"
        return permission.granted(self._problems, what, node.place)

    def _disable(self, op: Node) -> None:
        for name, node in op.items():
            if name != "disable":
                self._problems.error("PR404", f"'{name}' has no effect beside disable", node.head)
        target = op.value["disable"]
        task = self._target(target)
        if task is None or self._locked(task, target.place):
            return
        if self._policy is None or self._policy.may_disable(task.id, task.module).granted(
            self._problems, f"disable the task '{task.id}'", target.place
        ):
            task.disabled = target.place

    def _insert(self, kind: str, op: Node) -> None:
        if isinstance(op.value[kind].value, dict):
            return  # the format check reports the nested task
        body = Node({k: n for k, n in op.items() if k not in OPERATIONS}, op.place, op.key)
        task = draft_task(body, self._modules, self._layer, self._problems)
        if task is None or not self._may_insert(task.module, op):
            return
        if (handlers := body.get("on_exit")) is not None and not self._handlers_permitted(handlers):
            return
        if self._policy is not None and (lock := body.get("locked")) is not None:
            self._problems.error("PR402", "a job may not lock a task", lock.place)
        anchor = None if kind == "append" else self._target(op.value[kind])
        if kind != "append" and anchor is None:
            return
        if kind == "after" and anchor is not None and anchor.module == USER_COMMAND:
            message = "nothing runs after the user's command"
            hint = "register an exit handler: on_exit"
            self._problems.error("PR208", message, op.value[kind].place, hint)
            return
        self._tasks.setdefault(task.id, task)
        if anchor is None:
            self._append(task)
        else:
            # Tasks with the same anchor keep their order in the file.
            step = self._step_of[id(anchor)]
            self._inserted.setdefault((kind, id(step)), []).append(task)
            self._step_of[id(task)] = task

    def _append(self, task: TaskDraft) -> None:
        """Add a task at the end, but before the user's command."""
        self._step_of[id(task)] = task
        steps = self._draft.steps
        last = steps[-1] if steps else None
        if isinstance(last, TaskDraft) and last.module == USER_COMMAND:
            self._inserted.setdefault(("before", id(last)), []).append(task)
        else:
            steps.append(task)


def phase_hints(ids: Iterable[str], phase: Phase) -> dict[str, str]:
    """Hints for operations whose task is in the other phase."""
    return dict.fromkeys(ids, f"it is in {phase}: move this entry to {phase}")


def _leaves(path: str, node: Node) -> Iterator[tuple[str, Node]]:
    """The paths that a patch changes: each argument of ``args``, and each other keyword."""
    if path == "args" and isinstance(node.value, dict):
        for name, child in node.items():
            yield f"args.{name}", child
    else:
        yield path, node
