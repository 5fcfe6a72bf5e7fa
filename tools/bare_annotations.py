"""Types as users read them: `Annotated[int, LIMIT]` is an int, and its constraint is ours to check."""

from __future__ import annotations

import ast


class _Bare(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            assert isinstance(node.slice, ast.Tuple)
            return node.slice.elts[0]
        return node


def bare(annotation: str) -> str:
    """As the source writes it, without what `Annotated` adds."""
    if "Annotated[" not in annotation:
        return annotation
    return ast.unparse(_Bare().visit(ast.parse(annotation, mode="eval")))
