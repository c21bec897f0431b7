"""One module a stack, and the constructs that they are made of. Importing it chooses the CDK's Node.js."""

from stacks.nodejs import choose_node

choose_node()
